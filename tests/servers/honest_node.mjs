// An honest server of the handshake revisions on Node, without packages. `id` comes last in its answers.
import { createInterface } from "node:readline";

const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const answers = {
  initialize: (params) => ({
    protocolVersion: REVISIONS.includes(params.protocolVersion) ? params.protocolVersion : REVISIONS.at(-1),
    capabilities: { tools: {} },
    serverInfo: { name: "honest-node", version: "1.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: [{ name: "add", description: "Add two numbers", inputSchema: { type: "object", properties: {} } }],
  }),
};

// The request in a line; null for what is none.
function read(line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    return null;
  }
  const { jsonrpc, id, method, params, result } = message ?? {};
  const numbered = typeof id === "string" || Number.isSafeInteger(id);
  const shaped = params === undefined || (typeof params === "object" && !Array.isArray(params));
  const whole = jsonrpc === "2.0" && numbered && typeof method === "string" && shaped && result === undefined;
  return whole ? { id, method, params: params ?? {} } : null;
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = read(line);
  if (request === null) continue;
  const { id, method, params } = request;
  const body = Object.hasOwn(answers, method)
    ? { result: answers[method](params) }
    : { error: { code: -32601, message: "Method not found" } };
  process.stdout.write(JSON.stringify({ ...body, jsonrpc: "2.0", id }) + "\n");
}
