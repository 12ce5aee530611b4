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
local MOST_BYTES, MOST_HASHES = 512 * 1024 * 1024 - HEADER, 100

local function refuse(why) return redis.error_reply('ERR ' .. why) end

-- nil unless it is written in digits and 1 to `most`: an estimate of the rows may be 0, -1 or 1e6.
local function number(word, most)
  local value = word and word:match('^%d+$') and tonumber(word)
  return value and value >= 1 and value <= most and value or nil
end

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

-- Both are nil where there is no filter.
local function bits_and_hashes(key)
  local bits = (redis.call('STRLEN', key) - HEADER) * 8
  local hashes = number(redis.call('GETRANGE', key, 16, 19), MOST_HASHES)
  if bits > 0 and hashes then return bits, hashes end
end

-- nil where there is no filter; then no bit was visited.
local function each_bit(key, item, visit)
  local bits, hashes = bits_and_hashes(key)
  if not bits then return nil end
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
  local found = has(filter, item)
  if found then return 1 end
  return found == false and is_trusted() and 0 or -1
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
  if not here then return refuse('this server does not tell its run_id and master_replid') end
  if #generation ~= 16 then return refuse('a generation has 16 characters') end
  local size, count = number(bytes, MOST_BYTES), number(hashes, MOST_HASHES)
  if not size then
    return refuse('BYTES is a whole number from 1 to ' .. MOST_BYTES .. ': count the rows if there is no estimate')
  end
  if not count then return refuse('HASHES is a whole number from 1 to ' .. MOST_HASHES) end
  redis.call('SET', new, generation .. string.format('%04d', count))
  redis.call('SETRANGE', new, HEADER + size - 1, '\0')
  redis.call('SET', rebuild, here .. ' ' .. generation)
  return redis.status_reply('OK')
end

-- A row that finds no place ends the rebuild: it cannot be committed.
function operations.load(generation, ...)
  if generation_of(new) ~= generation then return refuse('another rebuild is under way') end
  for _, item in ipairs({...}) do
    if not put(new, item) then
      redis.call('DEL', rebuild)
      return refuse('the new filter has no place for a row: start again')
    end
  end
  return redis.status_reply('OK')
end

function operations.commit(generation)
  local noted, here = redis.call('GET', rebuild), server()
  if generation_of(new) ~= generation or not here or noted ~= here .. ' ' .. generation then
    return refuse('adds may be lost since start, or another rebuild is under way: start again')
  end
  if not bits_and_hashes(new) then return refuse('the new filter is damaged: start again') end
  redis.call('RENAME', new, filter)
  redis.call('DEL', rebuild)
  redis.call('SET', trust, noted)
  return redis.status_reply('OK')
end

local WORDS = {check = 1, add = 1, start = 3, load = 1, commit = 1} -- behind the operation
local name, words = ARGV[1] or '', #ARGV - 1
if #KEYS ~= 4 then return refuse('the script takes four keys: filter, trust, new, rebuild') end
if not WORDS[name] then return refuse('there is no such operation; there are: check add start load commit') end
if words < WORDS[name] or (words > WORDS[name] and name ~= 'load') then
  return refuse('wrong number of words for ' .. name .. '; the head of the script lists them')
end
return operations[name](unpack(ARGV, 2))
