// An agent of the OpenTelemetry SDK of Node.js as its packages are: the endpoint is in the environment.
const { trace } = require('@opentelemetry/api');
const { NodeTracerProvider, BatchSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-proto');

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const tracer = trace.getTracer('agent');

function call(name, args) {
  const attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': name,
    'gen_ai.tool.call.arguments': JSON.stringify(args),
  };
  tracer.startActiveSpan(`execute_tool ${name}`, { attributes }, (span) => span.end());
}

tracer.startActiveSpan('invoke_agent', { attributes: { 'gen_ai.operation.name': 'invoke_agent' } }, (root) => {
  call('confirm', {});
  call('book_flight', { city: 'Oslo' });
  root.end();
});
provider.shutdown().then(() => console.log("You fly to Oslo."), (error) => console.log(String(error)));
