#!/usr/bin/python3
"""The filters from Python, by the C API and ctypes: nothing to compile, nothing to install with pip.

usage: filter_ctypes.py LIBRARY
       examples/filter_ctypes.py build/release/lib/libtamis_filter.so

The class Filter is meant to be copied.
"""

import ctypes
import os
import sys
import tempfile


class Options(ctypes.Structure):
    _fields_ = [("type", ctypes.c_char_p), ("capacity", ctypes.c_uint64),
                ("fpr", ctypes.c_double), ("seed", ctypes.c_uint64)]


class Type(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("erases", ctypes.c_int),
                ("copies", ctypes.c_uint32), ("summary", ctypes.c_char_p), ("fixed", ctypes.c_int)]


class Info(ctypes.Structure):
    _fields_ = [("type", ctypes.POINTER(Type)), ("count", ctypes.c_uint64),
                ("size_bytes", ctypes.c_uint64), ("seed", ctypes.c_uint64)]


class Key(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t)]


OK, NOT_FOUND, RESOURCE_EXHAUSTED = 0, 2, 10


def load(path):
    """The library, with the types of the functions that are used here."""
    library = ctypes.CDLL(path)
    pointer, code, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
    key, keys = [ctypes.c_char_p, size], [ctypes.POINTER(Key), size]
    for name, result, arguments in [
            ("tamis_last_error", ctypes.c_char_p, []),
            ("tamis_filter_type_at", ctypes.POINTER(Type), [size]),
            ("tamis_filter_create", code, [ctypes.POINTER(Options), ctypes.POINTER(pointer)]),
            ("tamis_filter_load", code, [ctypes.c_char_p, ctypes.POINTER(pointer)]),
            ("tamis_filter_save", code, [pointer, ctypes.c_char_p]),
            ("tamis_filter_free", None, [pointer]),
            ("tamis_filter_insert", code, [pointer, *key]),
            ("tamis_filter_erase", code, [pointer, *key]),
            ("tamis_filter_may_contain", ctypes.c_int, [pointer, *key]),
            ("tamis_filter_may_contain_many", code,
             [pointer, *keys, ctypes.POINTER(ctypes.c_uint8)]),
            ("tamis_filter_merge", code, [pointer, pointer]),
            ("tamis_filter_describe", code, [pointer, ctypes.POINTER(Info)])]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Filter:
    """A set of bytes: `key in filter` is False when it is certainly not there."""

    def __init__(self, library, type="blocked", capacity=0, fpr=0.01, seed=0, path=None):
        self._library, self._filter = library, ctypes.c_void_p()
        if path is not None:
            self._check(library.tamis_filter_load(os.fsencode(path), ctypes.byref(self._filter)))
        else:
            options = Options(type.encode(), capacity, fpr, seed)
            self._check(library.tamis_filter_create(ctypes.byref(options),
                                                    ctypes.byref(self._filter)))

    def __del__(self):
        self._library.tamis_filter_free(self._filter)

    def _check(self, code):
        if code != OK:
            raise ValueError(self._library.tamis_last_error().decode())

    def add(self, key):
        """False, and nothing is changed, when there is no room for it."""
        code = self._library.tamis_filter_insert(self._filter, key, len(key))
        if code != RESOURCE_EXHAUSTED:
            self._check(code)
        return code == OK

    def remove(self, key):
        """False when it is not there. Only what was added may be removed."""
        code = self._library.tamis_filter_erase(self._filter, key, len(key))
        if code != NOT_FOUND:
            self._check(code)
        return code == OK

    def __contains__(self, key):
        return self._library.tamis_filter_may_contain(self._filter, key, len(key)) != 0

    def which(self, keys):
        """Those of the keys that may be there; faster than one by one."""
        array = (Key * len(keys))(*((key, len(key)) for key in keys))
        answers = (ctypes.c_uint8 * len(keys))()
        self._check(self._library.tamis_filter_may_contain_many(self._filter, array, len(keys),
                                                                answers))
        return [key for key, answer in zip(keys, answers) if answer]

    def merge(self, other):
        self._check(self._library.tamis_filter_merge(self._filter, other._filter))

    def save(self, path):
        self._check(self._library.tamis_filter_save(self._filter, os.fsencode(path)))

    def info(self):
        info = Info()
        self._check(self._library.tamis_filter_describe(self._filter, ctypes.byref(info)))
        return info

    def __len__(self):
        return self.info().count


def types(library):
    """The names of all types."""
    i = 0
    while type := library.tamis_filter_type_at(i):
        yield type.contents.name.decode()
        i += 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    library = load(sys.argv[1])
    print("types:", *types(library))

    mails = Filter(library, "blocked-quotient", capacity=10_000, fpr=0.003)
    members = [b"member-%d@example.org" % i for i in range(10_000)]
    others = [b"nobody-%d@example.org" % i for i in range(10_000)]
    for mail in members:
        assert mails.add(mail)
    for mail in members[:5_000]:
        assert mails.remove(mail)
    assert not mails.remove(b"nobody@example.org")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "mails.filter")
        mails.save(path)
        again = Filter(library, path=path)
    assert b"member-9999@example.org" in again
    assert again.which(members[5_000:]) == members[5_000:]
    false_positives = len(again.which(others))
    print("5000 of 5000 members found" if len(again) == 5_000 else "members are missing",
          "and few others" if false_positives < 100 else "and many others")

    try:
        Filter(library, "no such type", capacity=1)
    except ValueError as error:
        print("as an exception:", error)
    try:
        mails.merge(Filter(library, "blocked-quotient", capacity=10))
    except ValueError as error:
        print("as an exception:", error)


if __name__ == "__main__":
    main()
