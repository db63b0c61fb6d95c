/* The hub's API (docs/openapi.yaml), with the token of this tab. */

const KEY = "stagger-token";

export class Refused extends Error {
  constructor(status, detail, errors) {
    super(detail);
    this.status = status;
    this.errors = errors ?? []; /* faults of settings, with JSON pointers */
  }
}

/* The token is kept until the tab is closed, and goes nowhere but to this hub. */
export function setToken(token) {
  if (token === "")
    sessionStorage.removeItem(KEY);
  else
    sessionStorage.setItem(KEY, token);
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

function headers(more) {
  const token = sessionStorage.getItem(KEY);
  return {...more, ...(token === null ? {} : {Authorization: `Bearer ${token}`})};
}

async function ask(path, options) {
  let answer;

  try {
    answer = await fetch(path, {cache: "no-store", ...options});
  } catch (error) {
    if (error.name === "AbortError")
      throw error;
    throw new Refused(0, "the hub does not answer");
  }
  if (answer.ok)
    return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.detail ?? answer.statusText, problem.errors);
}

export async function get(path, signal) {
  return (await ask(path, {headers: headers(), signal})).json();
}

/* With its version, for write(). */
export async function getTagged(path) {
  const answer = await ask(path, {headers: headers()});
  return {value: await answer.json(), tag: answer.headers.get("ETag")};
}

/* A text of JSON, as it is; with a tag, only over the version that was read. */
export async function write(method, path, text, tag) {
  return (await ask(path, {method, body: text, headers: headers(
    {"Content-Type": "application/json", ...(tag === undefined ? {} : {"If-Match": tag})})})).json();
}

export async function remove(path) {
  return (await ask(path, {method: "DELETE", headers: headers()})).json();
}

export async function post(path, body, signal) {
  const options = body === undefined ? {headers: headers()}
    : {headers: headers({"Content-Type": "application/json"}), body: JSON.stringify(body)};
  return (await ask(path, {method: "POST", signal, ...options})).json();
}

export function query(path, fields) {
  const given = Object.entries(fields).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/* All of a list. */
export async function getPages(path, name, signal) {
  const all = [];
  let cursor = null;

  do {
    const page = await get(query(path, {limit: 1000, cursor}), signal);
    all.push(...page[name]);
    cursor = page.next;
  } while (cursor !== null);
  return all;
}

/* Those of these names that there are. */
export async function getTargets(names, signal) {
  const all = await Promise.all(names.map((name) =>
    get(`/v1/targets/${encodeURIComponent(name)}`, signal).catch((error) => {
      if (error.status !== 404)
        throw error;
      return null;
    })));
  return all.filter((t) => t !== null);
}

/* Server-sent events, each an object; returns when the hub ends them. An
 * EventSource cannot send a token. */
export async function follow(path, signal, told) {
  const answer = await ask(path, {headers: headers(), signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";

  for (;;) {
    const {done, value} = await reader.read();
    if (done)
      return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines)
      if (line.startsWith("data: "))
        told(JSON.parse(line.slice(6)));
  }
}
