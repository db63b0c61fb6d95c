// What a call costs in node, for bench/adapters.py.
//
// usage: node calls.mjs bare|cockatiel|p-retry success|retry
//
// As calls.c; a failure is an Error that is thrown. A wait of 0 is what these
// packages make of it.
import {ConstantBackoff, handleAll, retry} from 'cockatiel';
import pRetry from 'p-retry';

const [name, kind] = process.argv.slice(2);
const policy = retry(handleAll, {maxAttempts: 3, backoff: new ConstantBackoff(0)});
let calls = 0;

async function work() {
    if (kind === 'retry' && ++calls % 2 === 1)
        throw new Error('refused');
    return 1;
}

async function byHand() {
    for (;;) {
        try {
            return await work();
        } catch {
        }
    }
}

const call = {
    'bare': byHand,
    'cockatiel': () => policy.execute(work),
    'p-retry': () => pRetry(work, {retries: 3, minTimeout: 0, maxTimeout: 0}),
}[name];

async function measure(count) {
    const began = process.hrtime.bigint();
    for (let i = 0; i < count; i++)
        await call();
    return Number(process.hrtime.bigint() - began) / count;
}

await measure(200);
console.log((await measure(kind === 'retry' ? 400 : 20000)).toFixed(0));
