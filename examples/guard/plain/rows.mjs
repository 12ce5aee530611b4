// An application that asks a filter on a server without modules before its database, with node-redis
// (docs/PLAIN_GUARD.md).
//
// usage: node rows.mjs SOCKET, then `look_up ID`, `insert ID` and `delete ID` on the standard input
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createClient } from "redis";

class Database {
  rows = new Set();
  asked = 0;
  async find(id) {
    ++this.asked;
    return this.rows.has(id) ? id : null;
  }
  async insert(id) { this.rows.add(id); }
  async delete(id) { return this.rows.delete(id) ? 1 : 0; }
  async transaction(steps) {
    const before = new Set(this.rows);
    try {
      await steps();
    } catch (error) {
      this.rows = before;
      throw error;
    }
  }
}
const db = new Database();

// --- as the page has it ---
// Without the queue nothing waits for a server that is gone, and nothing is sent twice.
const r = createClient({ socket: { path: process.argv[2], connectTimeout: 100 }, disableOfflineQueue: true });
r.on("error", () => {});
await r.connect().catch(() => {});
const KEYS = ["{items}:filter", "{items}:trust", "{items}:new", "{items}:rebuild"];
const SCRIPT = readFileSync(new URL("guard.lua", import.meta.url), "utf8");

function guard(...words) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer in time")), 100);
  });
  const answer = r.sendCommand(["EVAL", SCRIPT, String(KEYS.length), ...KEYS, ...words]);
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

async function lookUp(id) {
  const answer = await guard("check", id).catch(() => -1);
  return answer === 0 ? null : db.find(id); // 0: there is no such row
}

async function insert(id) {
  await db.transaction(async () => { // rolled back by an error, as when the outcome of the add is unknown
    await db.insert(id);
    await guard("add", id);
  });
}

async function remove(id) {
  await db.delete(id); // the key stays in the filter until the next load, and costs a lookup now and then
}
// --- end ---

for await (const line of createInterface({ input: process.stdin })) {
  const [word, id] = line.split(" ");
  const asked = db.asked;
  let answer;
  try {
    answer = (await { look_up: lookUp, insert, delete: remove }[word](id)) ? "row" : "none";
  } catch {
    answer = "failed";
  }
  console.log(answer, db.asked > asked ? "asked" : "spared");
}
process.exit(0);
