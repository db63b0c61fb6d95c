// Events of the package of npm. usage: node cloud_events_judge.mjs FOLDER make | read
// `make`: requests, as JSON, of events in both modes; `read`: what it reads of such
// requests on stdin, an event each. The package encodes and decodes no values of
// headers, so that all of them are plain.
import {createRequire} from "node:module";
import {readFileSync} from "node:fs";
import {pathToFileURL} from "node:url";

const [folder, what] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const {CloudEvent, HTTP} = require("cloudevents");

const events = [
  {datacontenttype: "application/json", subject: "a/b", ext: "1",
   time: "2026-03-01T12:00:00.000Z", data: {n: [1, 2.5, null], s: "€"}},
  {datacontenttype: "text/plain", data: "line\n\"two\" €"},
  {dataschema: "http://127.0.0.1/schema"},
];

const bytesOf = body => Buffer.from(body ?? "").toString("base64");

function make() {
  return events.flatMap((more, number) => {
    const event = new CloudEvent({
      id: String(number), source: "/judge", type: "com.example.judge",
      specversion: "1.0", ...more});
    return [HTTP.binary(event), HTTP.structured(event)].map(
      ({headers, body}) => ({headers, body: bytesOf(body)}));
  });
}

function read({headers, body}) {
  const event = HTTP.toEvent(
    {headers, body: Buffer.from(body, "base64").toString()});
  const {data, ...attributes} = event.toJSON();
  return {...attributes, data: data || null}; // "" where there is none
}

console.log(JSON.stringify(
  what === "make" ? make() : JSON.parse(readFileSync(0, "utf8")).map(read)));
