-- What wrk sends in bench/hub.py. The first argument says what:
--   leaf     the request that a hub sends for a message of BYTES
--   message  one message to an ingress; "keys" gives each a key of its own
--   batch    COUNT messages in a batch; keys as above
--
-- wrk ... -s hub_post.lua URL -- WHAT BYTES [COUNT] [keys]

local what, size, count, has_keys
local sent = 0
local seed = ""

function setup(thread)
    number = (number or 0) + 1
    thread:set("number", number)
end

local function key()
    sent = sent + 1
    return seed .. sent
end

local function leaf()
    wrk.headers["Content-Type"] = "text/plain"
    wrk.headers["Idempotency-Key"] = "00c0ffee00c0ffee-1234567"
    wrk.headers["Stagger-Message"] = "00c0ffee00c0ffee-1234567"
    wrk.headers["Stagger-Attempt"] = "1"
    wrk.headers["Stagger-Attempts-Max"] = "5"
    local text = wrk.format("POST", nil, nil, string.rep("x", size))
    return function() return text end
end

local function message()
    local body = string.rep("x", size)
    wrk.headers["Content-Type"] = "text/plain"
    if not has_keys then
        local text = wrk.format("POST", nil, nil, body)
        return function() return text end
    end
    return function()
        wrk.headers["Idempotency-Key"] = key()
        return wrk.format("POST", nil, nil, body)
    end
end

local function batch()
    local line = '"body":"' .. string.rep("x", size) .. '"}\n'
    wrk.headers["Content-Type"] = "application/x-ndjson"
    if not has_keys then
        local text = wrk.format("POST", nil, nil,
                                string.rep("{" .. line, count))
        return function() return text end
    end
    return function()
        local lines = {}
        for i = 1, count do
            lines[i] = '{"idempotency_key":"' .. key() .. '",' .. line
        end
        return wrk.format("POST", nil, nil, table.concat(lines))
    end
end

function init(arguments)
    what = arguments[1]
    size = tonumber(arguments[2])
    count = tonumber(arguments[3] or 1)
    has_keys = arguments[4] == "keys"
    seed = string.format("%d-%d-", os.time(), number)
    request = ({leaf = leaf, message = message, batch = batch})[what]()
end

function done(summary, latency)
    io.write(string.format(
        "wrk %d requests %d us %d errors %d us p50 %d us p99\n",
        summary.requests, summary.duration,
        summary.errors.status + summary.errors.connect + summary.errors.read +
            summary.errors.write + summary.errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
