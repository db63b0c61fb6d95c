// Signs with the packages of npm that senders have: for each line of JSON on stdin,
// {scheme, secret, id, body}, the headers as a line of JSON.
// usage: node verify_packages_sign.mjs FOLDER
import {createRequire} from "node:module";
import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";

const [folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const {Webhook} = require("standardwebhooks");
const Stripe = require("stripe");
const {webhooks} = new (Stripe.default ?? Stripe)("sk_test_none");
const octokit = await import(pathToFileURL(
  `${folder}/node_modules/@octokit/webhooks-methods/dist-node/index.js`));

const signers = {
  "standard-webhooks": ({secret, id}, body) => {
    const now = new Date();
    return {
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(now / 1000)),
      "webhook-signature": new Webhook(secret).sign(id, now, body),
    };
  },
  stripe: ({secret}, payload) => ({
    "stripe-signature": webhooks.generateTestHeaderString({payload, secret}),
  }),
  github: async ({secret, id}, body) => ({
    "x-hub-signature-256": await octokit.sign(secret, body),
    "x-github-delivery": id,
  }),
};

for await (const line of createInterface({input: process.stdin})) {
  const given = JSON.parse(line);
  console.log(JSON.stringify(await signers[given.scheme](given, given.body)));
}
