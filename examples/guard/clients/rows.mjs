// An application that asks a filter in Redis before its database, with node-redis (docs/GUARD.md).
//
// usage: node rows.mjs SOCKET, then `look_up ID`, `insert ID` and `delete ID` on the standard input
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

// --- as docs/GUARD.md has it ---
// Without the queue nothing waits for a server that is gone, and nothing is sent twice.
const r = createClient({ socket: { path: process.argv[2], connectTimeout: 100 }, disableOfflineQueue: true });
r.on("error", () => {});
await r.connect().catch(() => {});

function ask(...words) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer in time")), 100);
  });
  return Promise.race([r.sendCommand(words), late]).finally(() => clearTimeout(timer));
}

async function lookUp(id) {
  const answer = await ask("TAMIS.CHECK", "items", id).catch(() => [-1]);
  return answer[0] === 0 ? null : db.find(id); // 0: there is no such row
}

async function insert(id) {
  await db.transaction(async () => { // rolled back by an error
    await db.insert(id);
    const added = await ask("TAMIS.ADD", "items", id).catch((error) => {
      if (!/not found/.test(error.message)) throw error; // without a filter nothing is refused
      return [0];
    });
    if (added[0] === -1) throw new Error("the filter is full: tamis guard load --capacity");
  });
}

async function remove(id) {
  const generation = await ask("TAMIS.GENERATION", "items").catch(() => null); // before the row goes
  // The row count, after the commit. No row went: the key in the filter, if any, belongs to another insert.
  if ((await db.delete(id)) === 0) return;
  // Once, whatever comes of it: what stays in the filter costs a lookup now and then.
  if (generation !== null) await ask("TAMIS.DELIF", "items", String(generation), id).catch(() => {});
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
