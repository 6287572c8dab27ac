"""The Lua script that writes rows and the entry of the ledger at once, unless a newer writer has the lane."""

# A column comes as the lengths of its texts (-1 for null) and all of them in one, so that Python does nothing
# for each of them. A script is not undone when it fails: the entry comes last, and rows may come again.
# Redis refuses a script for want of memory at its first write, if that one takes memory: so the token is set.
_SCRIPT = """
local lane, token, entry = ARGV[1], ARGV[2], ARGV[3]
if redis.call('HGET', KEYS[1], 'token:' .. lane) ~= token then
  return {0, redis.call('HGET', KEYS[1], 'entry:' .. lane) or ''}
end
redis.call('HSET', KEYS[1], 'token:' .. lane, token)
local prefix = redis.call('GET', KEYS[2]) or ARGV[4]
local options, width, at = cmsgpack.unpack(ARGV[5]), tonumber(ARGV[6]), 7
local call, sub, touched = redis.call, string.sub, {}
local function put(row)
%(put)s
end
local row, lengths, texts, ends = {}, {}, {}, {}
while at <= #ARGV do
  for column = 1, width do
    lengths[column], texts[column], ends[column] = cmsgpack.unpack(ARGV[at]), ARGV[at + 1], 0
    at = at + 2
  end
  for number = 1, #lengths[1] do
    for column = 1, width do
      local length, done = lengths[column][number], ends[column]
      if length < 0 then
        row[column] = nil
      else
        row[column] = sub(texts[column], done + 1, done + length)
        ends[column] = done + length
      end
    end
    put(row)
  end
end
%(finish)s
if entry ~= '' then
  call('HSET', KEYS[1], 'entry:' .. lane, entry)
end
return {1}
"""


def script(put: str, finish: str) -> str:
    """Return the script for a layout."""
    return _SCRIPT % {"put": put.strip("\n"), "finish": finish.strip("\n")}
