// Servers with one fault each, held out, on Node. Usage: faults.mjs MODE ROOT (or --list).
//
// Written without sight of the payloads, and not changed since their first run. `NAME-benign` is the twin of `NAME`.

import { exec, execFile } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import vm from "node:vm";
import { promisify } from "node:util";

const root = path.resolve(process.argv[3] ?? ".");
const run = promisify(exec);
const runFile = promisify(execFile);
const text = (description) => ({ type: "string", description });
const schema = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required });

function inside(name) {
  const full = fs.realpathSync(path.resolve(root, name));
  if (full !== fs.realpathSync(root) && !full.startsWith(fs.realpathSync(root) + path.sep)) {
    throw new Error("access denied");
  }
  return full;
}

const count = { name: "count_lines", description: "Count the lines of a file.", inputSchema: schema({ file: text("Path of the file.") }) };
const info = {
  name: "page_info",
  description: "Facts about a text.",
  inputSchema: schema({ options: schema({ q: text("What to look at."), deep: { type: "boolean" } }, ["q"]) }),
};
const save = {
  name: "save_all",
  description: "Save several files into the project.",
  inputSchema: schema({ files: { type: "object", additionalProperties: { type: "string" }, description: "File name to content." } }),
};
const allowed = {
  name: "run_allowed",
  description: "Run a command. Only these commands are allowed: ls, cat, echo.",
  inputSchema: schema({ command: text("The command line.") }),
};
const filter = {
  name: "filter_rows",
  description: "Keep the rows of a list for which a condition on `row` holds.",
  inputSchema: schema({ rows: { type: "array", items: { type: "number" } }, where: text("Field and sign, for example row > 2.") }),
};
const greet = { name: "greeting", description: "Fill a greeting: ${name} stands for the name.", inputSchema: schema({ t: text("The greeting.") }) };
const get = {
  name: "get_json",
  description: "Fetch JSON from a public API over HTTPS or HTTP. Hosts in private networks are not allowed.",
  inputSchema: schema({ endpoint: text("URL of the API.") }),
};
const several = {
  name: "read_many",
  description: "Read several files of the project.",
  inputSchema: schema({ paths: { type: "array", items: { type: "string" }, description: "Relative paths." } }),
};

const GRANTED = ["ls", "cat", "echo"];
const PRIVATE = [/^10\./, /^192\.168\./, /^172\.(1[6-9]|2\d|3[01])\./, /^169\.254\./];

const modes = {
  "exec-count": [count, async ({ file }) => (await run(`wc -l ${file}`, { cwd: root })).stdout],
  "exec-count-benign": [count, async ({ file }) => (await runFile("wc", ["-l", "--", inside(file)])).stdout],
  "exec-nested": [info, async ({ options }) => (await run(`echo '${options.q}' | wc -c`, { cwd: root })).stdout],
  "exec-nested-benign": [info, async ({ options }) => String(Buffer.byteLength(options.q) + 1)],
  "write-names": [
    save,
    async ({ files }) => {
      for (const [name, content] of Object.entries(files)) {
        fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
        fs.writeFileSync(path.join(root, name), content);
      }
      return `${Object.keys(files).length} saved`;
    },
  ],
  "write-names-benign": [
    save,
    async ({ files }) => {
      for (const [name, content] of Object.entries(files)) {
        if (!/^[\w-]+(\.[\w-]+)*$/.test(name)) throw new Error("plain file names only");
        fs.writeFileSync(path.join(root, name), content);
      }
      return `${Object.keys(files).length} saved`;
    },
  ],
  "first-word": [
    allowed,
    async ({ command }) => {
      if (!GRANTED.includes(command.trim().split(/\s+/)[0])) throw new Error("that command is not allowed");
      return (await run(command, { cwd: root })).stdout;
    },
  ],
  "first-word-benign": [
    allowed,
    async ({ command }) => {
      const [program, ...words] = command.trim().split(/\s+/);
      if (!GRANTED.includes(program) || words.some((word) => !/^[\w.-]+$/.test(word) || word.includes(".."))) {
        throw new Error("that command is not allowed");
      }
      for (const word of words) if (program !== "echo" && fs.existsSync(path.join(root, word))) inside(word);
      return (await runFile(program, words, { cwd: root })).stdout;
    },
  ],
  "function-where": [filter, async ({ rows, where }) => JSON.stringify(rows.filter((row) => new Function("row", `return ${where}`)(row)))],
  "function-where-benign": [
    filter,
    async ({ rows, where }) => {
      const found = /^row\s*(<|>|==)\s*(-?\d+(?:\.\d+)?)$/.exec(where.trim());
      if (!found) throw new Error("conditions look like: row > 2");
      const other = Number(found[2]);
      const holds = { "<": (x) => x < other, ">": (x) => x > other, "==": (x) => x === other }[found[1]];
      return JSON.stringify(rows.filter(holds));
    },
  ],
  "vm-greeting": [greet, async ({ t }) => String(vm.runInNewContext("`" + t + "`", { name: "Sam" }))],
  "vm-greeting-benign": [greet, async ({ t }) => t.replaceAll("${name}", "Sam")],
  "fetch-list": [
    get,
    async ({ endpoint }) => {
      const host = new URL(endpoint).hostname;
      if (PRIVATE.some((range) => range.test(host))) throw new Error("private networks are not allowed");
      return (await (await fetch(endpoint, { signal: AbortSignal.timeout(5000) })).text()).slice(0, 4000);
    },
  ],
  "fetch-list-benign": [
    get,
    async ({ endpoint }) => {
      const host = new URL(endpoint).hostname;
      if (!/^([a-z0-9-]+\.)+[a-z]{2,}$/.test(host) || !/[a-z]$/.test(host)) throw new Error("names of public hosts only");
      const answer = await fetch(endpoint, { redirect: "error", signal: AbortSignal.timeout(5000) });
      return (await answer.text()).slice(0, 4000);
    },
  ],
  "read-many": [several, async ({ paths }) => paths.map((name) => fs.readFileSync(path.join(root, name), "utf8")).join("\n")],
  "read-many-benign": [several, async ({ paths }) => paths.map((name) => fs.readFileSync(inside(name), "utf8")).join("\n")],
};

async function answer([tool, act], method, params) {
  if (method === "initialize") {
    return { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: tool.name, version: "1" } };
  }
  if (method === "ping") return {};
  if (method === "tools/list") return { tools: [tool] };
  if (method !== "tools/call") return undefined;
  try {
    if (params.name !== tool.name) throw new Error("there is no such tool");
    return { content: [{ type: "text", text: await act(params.arguments ?? {}) }] };
  } catch (error) {
    return { content: [{ type: "text", text: `failed: ${error.message}` }], isError: true };
  }
}

if (process.argv[2] === "--list") {
  console.log(Object.keys(modes).sort().join("\n"));
} else {
  const chosen = modes[process.argv[2]];
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      continue;
    }
    if (typeof message !== "object" || message === null || typeof message.method !== "string" || message.id === undefined) continue;
    const result = await answer(chosen, message.method, message.params ?? {});
    const reply = { jsonrpc: "2.0", id: message.id };
    console.log(JSON.stringify(result === undefined ? { ...reply, error: { code: -32601, message: "Method not found" } } : { ...reply, result }));
  }
}
