// What one writes without a hub, in JavaScript: kafkajs and undici. For
// comparison: bench/kafka.py.
//
// usage: node index.mjs BROKERS GROUP TOPIC URL...
//
// Every record goes to every URL by POST, 64 records of a partition at once, and
// again after 1, 2, 4 and 8 s. An offset is committed when all of those before it
// are done. Runs until SIGTERM.
import { Kafka, logLevel } from "kafkajs";
import { Pool } from "undici";

const [brokers, group, topic, ...urls] = process.argv.slice(2);
const EACH = 64;
const ATTEMPTS = 5;
const TIMEOUT_MS = 10000;

const targets = urls.map((url) => {
    const { origin, pathname } = new URL(url);
    return {
        path: pathname,
        pool: new Pool(origin, { connections: EACH, connectTimeout: TIMEOUT_MS,
                                 headersTimeout: TIMEOUT_MS }),
    };
});

async function attempt(target, body) {
    const { statusCode, body: answer } = await target.pool.request({
        path: target.path, method: "POST", body,
        headers: { "content-type": "application/json" },
    });
    await answer.dump();
    if (statusCode < 200 || statusCode > 299)
        throw new Error(`status ${statusCode}`);
}

async function deliver(target, body) {
    for (let i = 0; i < ATTEMPTS; i++) {
        try {
            return await attempt(target, body);
        } catch {
            await new Promise((done) => setTimeout(done, 1000 * 2 ** i));
        }
    }
}

const kafka = new Kafka({ brokers: brokers.split(","),
                          logLevel: logLevel.NOTHING });
const consumer = kafka.consumer({ groupId: group });
await consumer.connect();
await consumer.subscribe({ topics: [topic], fromBeginning: true });
await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    partitionsConsumedConcurrently: 16,
    eachBatch: async ({ batch, resolveOffset, heartbeat, isRunning }) => {
        for (let at = 0; at < batch.messages.length && isRunning(); at += EACH) {
            const some = batch.messages.slice(at, at + EACH);
            await Promise.all(some.flatMap((m) =>
                targets.map((t) => deliver(t, m.value))));
            const last = some[some.length - 1].offset;
            resolveOffset(last);
            await consumer.commitOffsets([{
                topic, partition: batch.partition,
                offset: (BigInt(last) + 1n).toString(),
            }]);
            await heartbeat();
        }
    },
});
process.on("SIGTERM", () => consumer.disconnect().then(() => process.exit(0)));
