-- A Bloom filter before a database, on a Redis or Valkey server without modules (docs/PLAIN_GUARD.md).
--
-- EVAL it with four keys, {NAME}:filter {NAME}:trust {NAME}:new {NAME}:rebuild, and one of
--   check ITEM            1 perhaps, 0 certainly not, -1 unknown
--   add ITEM              1 added, 0 there is no filter
--   start GENERATION BYTES HASHES    begins a filter beside the old one; 16 characters, new each time
--   load GENERATION ITEM...          adds rows of the database to it
--   commit GENERATION                puts it in the place of the old one, trusted
local filter, trust, new, rebuild = unpack(KEYS)
local HEADER = 20 -- characters: the generation, then the number of hashes

-- Which process this is, and which history its data have: both change when adds may be lost.
local function server()
  local process = redis.call('INFO', 'server'):match('run_id:(%w+)')
  local history = redis.call('INFO', 'replication'):match('master_replid:(%w+)')
  if not process or not history then return nil end
  return process .. ' ' .. history
end

local function generation_of(key) return redis.call('GETRANGE', key, 0, 15) end

local function is_trusted()
  local noted, here = redis.call('GET', trust), server()
  return noted and here and noted == here .. ' ' .. generation_of(filter)
end

local function each_bit(key, item, visit)
  local bits = (redis.call('STRLEN', key) - HEADER) * 8
  local hashes = tonumber(redis.call('GETRANGE', key, 16, 19))
  if bits <= 0 or not hashes then return false end
  local digest = redis.sha1hex(item)
  local at, step = tonumber(digest:sub(1, 8), 16), 2 * tonumber(digest:sub(9, 16), 16) + 1
  for i = 1, hashes do
    if not visit(HEADER * 8 + at % bits) then return false end
    at = at + step
  end
  return true
end

local function has(key, item)
  return each_bit(key, item, function(bit) return redis.call('GETBIT', key, bit) == 1 end)
end

local function put(key, item)
  return each_bit(key, item, function(bit) redis.call('SETBIT', key, bit, 1) return true end)
end

local operations = {}

function operations.check(item)
  if has(filter, item) then return 1 end
  return is_trusted() and 0 or -1
end

-- An add that finds no filter ends the trust in one that may come back under its name.
function operations.add(item)
  local added = 0
  for key, note in pairs({[filter] = trust, [new] = rebuild}) do
    if put(key, item) then added = 1 else redis.call('DEL', note) end
  end
  return added
end

function operations.start(generation, bytes, hashes)
  local here = server()
  if not here then return redis.error_reply('ERR this server does not tell its run_id and master_replid') end
  if #generation ~= 16 then return redis.error_reply('ERR a generation has 16 characters') end
  redis.call('SET', new, generation .. string.format('%04d', hashes))
  redis.call('SETRANGE', new, HEADER + bytes - 1, '\0')
  redis.call('SET', rebuild, here .. ' ' .. generation)
  return redis.status_reply('OK')
end

function operations.load(generation, ...)
  if generation_of(new) ~= generation then return redis.error_reply('ERR another rebuild is under way') end
  for _, item in ipairs({...}) do put(new, item) end
  return redis.status_reply('OK')
end

function operations.commit(generation)
  local noted, here = redis.call('GET', rebuild), server()
  if generation_of(new) ~= generation or not here or noted ~= here .. ' ' .. generation then
    return redis.error_reply('ERR adds may be lost since start, or another rebuild is under way: start again')
  end
  redis.call('RENAME', new, filter)
  redis.call('DEL', rebuild)
  redis.call('SET', trust, noted)
  return redis.status_reply('OK')
end

return operations[ARGV[1]](unpack(ARGV, 2))
