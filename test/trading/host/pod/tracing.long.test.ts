import { expect, test, vi } from 'vitest';
import { startOtlpReceiver } from '../../../server/otlp-receiver.ts';
import { ACTS, newWorld, soon } from './world.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';

test('an order of a runner, its request to the venue and its report belong to the trace of the deployment', async (context) => {
  const { exchange, server, bar, begin } = await newWorld(context);
  const receiver = await startOtlpReceiver();
  context.onTestFinished(receiver.close);
  server.traceparent = `00-${TRACE}-b7ad6b7169203331-01`;
  const run = await begin({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } });
  await bar(ACTS.buy);
  await vi.waitFor(() => expect(exchange.orders).toHaveLength(1), soon);
  await vi.waitFor(() => expect(server.state?.positions).not.toEqual({}), soon);
  run.stop();
  await run.done;

  const spans = receiver.spans().filter(({ traceId }) => traceId === TRACE);
  const named = (name: string) => spans.find((span) => span.name === name);
  const [session, order] = [named('session'), named('order')];
  expect(session).toMatchObject({
    parentSpanId: 'b7ad6b7169203331',
    service: 'service-local-runner',
  });
  expect(order).toMatchObject({
    parentSpanId: session!.spanId,
    attributes: { 'order.side': 'buy', 'order.outcome': 'filled' },
  });
  for (const name of ['venue place', 'venue filled']) {
    expect(named(name)).toMatchObject({ parentSpanId: order!.spanId });
  }
  const reports = spans.filter(({ name }) => name === 'report').map(({ spanId }) => spanId);
  expect(server.traces.length).toBeGreaterThan(0);
  expect(server.traces.map((header) => header.split('-')[1])).toEqual(
    server.traces.map(() => TRACE),
  );
  expect(reports).toEqual(expect.arrayContaining(server.traces.map((one) => one.split('-')[2])));
  expect(receiver.metrics().map(({ name }) => name)).toContain('service_local_run_equity');
});
