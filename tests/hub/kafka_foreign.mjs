// A foreign producer, consumer and administrator: kafkajs.
//
// usage: node kafka_foreign.mjs MODULES BROKERS TOPIC DEAD GROUP COUNT
//
// Sends COUNT messages to TOPIC, waits for one dead letter in DEAD and until the
// group has committed all of it, and prints what it saw as JSON.
import { createRequire } from "node:module";

const [modules, brokers, topic, dead, group, count] = process.argv.slice(2);
const { Kafka, logLevel } = createRequire(`${modules}/`)("kafkajs");
const kafka = new Kafka({ brokers: brokers.split(","),
                          logLevel: logLevel.ERROR });

const producer = kafka.producer();
await producer.connect();
await producer.send({
    topic,
    messages: Array.from({ length: Number(count) }, (_, i) => ({
        key: `k${i}`, value: JSON.stringify({ n: i }),
        headers: { "X-Kind": "paid", "Not-Listed": "x" },
    })),
});
await producer.disconnect();

function text(buffer) {
    return buffer === null ? null : buffer.toString();
}

const consumer = kafka.consumer({ groupId: "letters" });
await consumer.connect();
await consumer.subscribe({ topics: [dead], fromBeginning: true });
const letter = await new Promise((found) => consumer.run({
    eachMessage: async ({ message }) => found({
        key: text(message.key), value: text(message.value),
        headers: Object.fromEntries(Object.entries(message.headers)
            .map(([name, value]) => [name, text(value)])),
    }),
}));
await consumer.disconnect();

const admin = kafka.admin();
await admin.connect();
let offsets;
do {
    await new Promise((done) => setTimeout(done, 100));
    const [found] = await admin.fetchOffsets({ groupId: group,
                                               topics: [topic] });
    offsets = Object.fromEntries(found.partitions.map(
        ({ partition, offset }) => [partition, offset]));
} while (Object.values(offsets).reduce((sum, o) => sum + Number(o), 0) <
         Number(count));
await admin.disconnect();
console.log(JSON.stringify({ letter, offsets }));
