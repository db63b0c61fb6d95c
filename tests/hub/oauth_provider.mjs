// An authorization server, node-oidc-provider, for oauth_packages.py.
//
// usage: node oauth_provider.mjs TOOLS < CONFIGURATION
//
// Prints where it listens. The configuration is a line of JSON.
import {createRequire} from "node:module";
import {createServer} from "node:http";
import {pathToFileURL} from "node:url";

const require = createRequire(process.argv[2] + "/");
const {default: Provider} = await import(pathToFileURL(require.resolve("oidc-provider")));

let input = "";
process.stdin.setEncoding("utf8");
for await (const piece of process.stdin) {
  input += piece;
  if (input.includes("\n"))
    break;
}

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, JSON.parse(input));

  provider.on("server_error", (ctx, error) => console.error(error));
  server.on("request", provider.callback());
  console.log(issuer);
});
