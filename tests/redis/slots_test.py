#!/usr/bin/env python3
"""Filters whose slots Valkey 9 moves to another server of a cluster (CLUSTER MIGRATESLOTS): each is the same there, with what
was added meanwhile, and one with GUARD is no longer believed. Other servers have no such command.
usage: slots_test.py MODULE
"""

import sys

from persistence_test import free_port
from redis_server import Error, Server

MODULE = sys.argv[1]
ITEMS = [f"item{i}" for i in range(2000)]
LATER = [f"later{i}" for i in range(500)]


def node():
    port = free_port()
    return Server(MODULE, "cluster-enabled", "yes", "cluster-port", str(free_port()), "cluster-require-full-coverage", "no",
                  port=port)


def wait(condition):
    while not condition():
        pass


def join(one, other):
    """Two servers of one cluster; the first has all slots."""
    first, second = one.client(), other.client()
    assert first("CLUSTER", "ADDSLOTSRANGE", "0", "16383") == "OK"
    port = second("CONFIG", "GET", "port")[1]
    bus = second("CONFIG", "GET", "cluster-port")[1]
    assert first("CLUSTER", "MEET", "127.0.0.1", port, bus) == "OK"
    for client in (first, second):
        wait(lambda client=client: b"cluster_state:ok" in client("CLUSTER", "INFO")
             and b"cluster_known_nodes:2" in client("CLUSTER", "INFO")
             and b"cluster_slots_assigned:16384" in client("CLUSTER", "INFO"))
    return first, second


def fill(client):
    assert client("TAMIS.RESERVE", "guard", "0.001", "10000", "GUARD") == "OK"
    assert all(reply >= 0 for reply in client("TAMIS.ADD", "guard", *ITEMS))
    assert client("TAMIS.TRUST", "guard") == "OK"
    assert client("TAMIS.CHECK", "guard", "item1", "absent") == [1, 0]
    assert client("BF.RESERVE", "bloom", "0.001", "100") == "OK"
    assert not any(isinstance(reply, Error) for reply in client("BF.MADD", "bloom", *ITEMS))
    assert client("CF.RESERVE", "cuckoo", "100") == "OK"
    assert not any(isinstance(reply, Error) for reply in client("CF.INSERT", "cuckoo", "ITEMS", *ITEMS))


def main():
    with node() as one, node() as other:
        if isinstance(one.client()("CLUSTER", "GETSLOTMIGRATIONS"), Error):
            print("this server has no CLUSTER MIGRATESLOTS")
            return
        first, second = join(one, other)
        fill(first)
        keys = ("guard", "bloom", "cuckoo")
        there = second("CLUSTER", "MYID")
        for key in keys:
            slot = str(first("CLUSTER", "KEYSLOT", key))
            digest = first("DEBUG", "DIGEST-VALUE", key)
            moved = first("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", there)
            assert moved == "OK", moved
            if key == "guard":
                # Until the slot has gone each of these is acknowledged here.
                added = []
                for item in LATER:
                    reply = first("TAMIS.ADD", key, item)
                    if isinstance(reply, Error):
                        break
                    added.append(item)
            wait(lambda key=key: not isinstance(second("EXISTS", key), Error) and second("EXISTS", key) == 1)
            if key != "guard":
                assert second("DEBUG", "DIGEST-VALUE", key) == digest, key
            assert isinstance(first("EXISTS", key), Error), "it has gone"
        assert second("BF.MEXISTS", "bloom", *ITEMS).count(1) == len(ITEMS)
        assert second("CF.MEXISTS", "cuckoo", *ITEMS).count(1) == len(ITEMS)
        assert second("TAMIS.CHECK", "guard", "item1", "absent") == [-1, -1], "its trust has ended"
        assert second("TAMIS.TRUST", "guard") == "OK"
        assert second("TAMIS.CHECK", "guard", *ITEMS, *added).count(1) == len(ITEMS) + len(added)
        print(f"{len(keys)} filters moved, {len(added)} items added meanwhile")


if __name__ == "__main__":
    main()
