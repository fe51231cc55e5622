// The agent of the Vercel AI SDK: node vercel_ai.mjs SCENARIO URL

// [set up]
import { OpenTelemetry } from "@ai-sdk/otel";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { registerTelemetry } from "ai";

const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();
registerTelemetry(new OpenTelemetry());
// [end]

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { appendFileSync } from "node:fs";
import { z } from "zod";

const [scenario, url] = process.argv.slice(2);
let number = 0;

const now = () => BigInt(Math.round((performance.timeOrigin + performance.now()) * 1000)) * 1000n;

// What happens in `work` is one execution of `name`: it is written down when it starts and when it ends.
async function executed(name, args, work) {
  const call = number++;
  const write = (entry, key) =>
    appendFileSync("calls.jsonl", JSON.stringify({ call, ...entry }).slice(0, -1) + `, "${key}": ${now()}}\n`);
  write({ tool: name, arguments: args }, "started_ns");
  await new Promise((done) => setTimeout(done, 5));
  try {
    const result = work();
    write({ outcome: "returned", result }, "ended_ns");
    return result;
  } catch (error) {
    write({ outcome: "raised", result: error.message }, "ended_ns");
    throw error;
  }
}

const offered = (name, description, inputSchema, work) =>
  tool({ description, inputSchema, execute: (args) => executed(name, args, () => work(args)) });

const tools = {
  search: offered(
    "search",
    "Find documents.",
    z.object({ query: z.string(), filters: z.object({ tags: z.array(z.string()), limit: z.number() }) }),
    () => ["Rechnung № 7", "発票 ‘7’"],
  ),
  weather: offered("weather", "Tell the weather in a city.", z.object({ city: z.string() }), ({ city }) => `-3.5 °C in ${city}`),
  send_email: offered("send_email", "Send an e-mail.", z.object({ to: z.array(z.string()), body: z.string() }), () => {
    if (scenario === "cut_short") process.kill(process.pid, "SIGKILL");
    return "sent ✓";
  }),
  book_table: offered("book_table", "Book a table in the restaurant.", z.object({ people: z.number() }), () => {
    throw new Error("the restaurant is full – «complet»");
  }),
};

const model = createOpenAI({ baseURL: url, apiKey: "scripted" }).chat("gpt-4.1");
const { text } = await generateText({ model, tools, prompt: "Help me.", stopWhen: stepCountIs(6) });
console.log(text);
await provider.shutdown();
