// Says of each check on stdin, a line of JSON, whether a package of npm takes it:
// true or false a line. usage: node verify_packages_judge.mjs FOLDER SCHEME
import {createRequire} from "node:module";
import {createInterface} from "node:readline";
import {pathToFileURL} from "node:url";

const [folder, scheme] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));

const makers = {
  "standard-webhooks": () => {
    const {Webhook, WebhookVerificationError} = require("standardwebhooks");
    return ({secret, headers}, body) => {
      try {
        new Webhook(secret).verify(body, headers, {jsonParse: false});
        return true;
      } catch (e) {
        if (e instanceof WebhookVerificationError) return false;
        throw e;
      }
    };
  },
  stripe: () => {
    const Stripe = require("stripe");
    const {webhooks} = new (Stripe.default ?? Stripe)("sk_test_none");
    return ({secret, headers}, body) => {
      try {
        return webhooks.signature.verifyHeader(
          body, headers["stripe-signature"], secret, 300);
      } catch (e) {
        if (e.type === "StripeSignatureVerificationError") return false;
        throw e;
      }
    };
  },
  github: async () => {
    const {verify} = await import(pathToFileURL(
      `${folder}/node_modules/@octokit/webhooks-methods/dist-node/index.js`));
    return ({secret, headers}, body) =>
      verify(secret, body, headers["x-hub-signature-256"]);
  },
};

const verify = await makers[scheme]();
for await (const line of createInterface({input: process.stdin})) {
  const check = JSON.parse(line);
  const body = Buffer.from(check.body, "base64").toString();
  console.log(Boolean(await verify(check, body)));
}
