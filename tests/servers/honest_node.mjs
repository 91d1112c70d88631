// An honest server of the handshake revisions on Node, without packages. `id` comes last in its answers.
import { createInterface } from "node:readline";

const answers = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "honest-node", version: "1.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({
    tools: [{ name: "add", description: "Add two numbers", inputSchema: { type: "object", properties: {} } }],
  }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined || method === undefined) continue;
  const body =
    method in answers
      ? { result: answers[method](params ?? {}) }
      : { error: { code: -32601, message: "Method not found" } };
  process.stdout.write(JSON.stringify({ ...body, jsonrpc: "2.0", id }) + "\n");
}
