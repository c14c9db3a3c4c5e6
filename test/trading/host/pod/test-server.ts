/** The part of a server that supervises runners; rejects reports that its API does not allow. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { reportRunner, type RunnerAnswer, type RunnerReport } from '../../../../src/api/runners.ts';

const { schema } = reportRunner.request.body.content['application/json'];

export interface TestServer {
  readonly url: string;
  command: RunnerAnswer['command'];
  controls: RunnerAnswer['controls'];
  /** Trace of the deployment. */
  traceparent: string | undefined;
  /** Traces of reports, in the header of W3C Trace Context. */
  readonly traces: string[];
  claimSeconds: number;
  reportSeconds: number;
  /** Whether it answers nothing but 503. */
  isAway: boolean;
  /** Whether the deployment is unknown to the server. */
  isGone: boolean;
  /** Called when a report has come, before it is answered. */
  onReport: (() => void) | undefined;
  /** Whether answers wait. */
  hold: boolean;
  /** Takes the claim away, for another instance. */
  readonly fence: () => void;
  /** Ends the claim, as time would after its process was killed. */
  readonly expireClaim: () => void;
  readonly reports: RunnerReport[];
  /** Events of the recorded batches, in order. */
  readonly events: NonNullable<RunnerReport['batch']>['events'];
  /** The state after the last of them. */
  state: NonNullable<RunnerReport['batch']>['state'] | undefined;
  readonly close: () => Promise<void>;
}

export async function startTestServer(token: string): Promise<TestServer> {
  let epoch = 0;
  let owner: string | undefined;
  let claimedUntil = 0;
  let recorded = 0;
  const problem = (code: string, reason?: string): object => ({
    type: 'about:blank',
    title: code,
    code,
    detail: code,
    retryable: false,
    ...(reason !== undefined && { reason }),
  });
  const answer = (report: RunnerReport): [number, object, Record<string, string>?] => {
    if (testServer.isAway) return [503, { ...problem('overloaded'), retryable: true }];
    if (testServer.isGone) return [404, problem('not_found')];
    testServer.reports.push(report);
    const now = performance.now();
    const isOwn = owner === report.instance_id;
    const isAllowed = report.epoch === null ? isOwn || claimedUntil <= now : isOwn;
    if (!isAllowed) {
      return [409, problem('conflict', 'fenced'), { 'retry-after': '1' }];
    }
    if (report.epoch === null) epoch += 1;
    owner = report.instance_id;
    claimedUntil = report.ended === null ? now + testServer.claimSeconds * 1000 : now;
    if (report.batch?.number === recorded + 1) {
      recorded += 1;
      testServer.events.push(...report.batch.events);
      testServer.state = report.batch.state;
    }
    const { command } = testServer;
    const halt = { halt_id: 'h', scope: 'bot', reason: 'a test', by: 'administrator:a' } as const;
    const times = {
      claim_seconds: testServer.claimSeconds,
      report_seconds: testServer.reportSeconds,
    };
    const { controls, traceparent } = testServer;
    const trace = traceparent !== undefined && { traceparent };
    return [
      200,
      {
        epoch,
        ...times,
        ...trace,
        command,
        halt: command === 'halt' ? halt : null,
        recorded,
        controls,
      },
    ];
  };
  const http = createServer(async (request, response) => {
    const body = schema.strict().parse(await json(request));
    const { traceparent } = request.headers;
    if (typeof traceparent === 'string') testServer.traces.push(traceparent);
    const isKnown = request.headers.authorization === `Bearer ${token}`;
    const [status, text, headers = {}] = isKnown
      ? answer(body)
      : [401, problem('not_authenticated')];
    testServer.onReport?.();
    while (testServer.hold) await new Promise((resolve) => setTimeout(resolve, 5));
    const type = status === 200 ? 'application/json' : 'application/problem+json';
    response
      .writeHead(status, { 'content-type': type, 'service-name': 'service-local', ...headers })
      .end(JSON.stringify(text));
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const testServer: TestServer = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    command: 'trade',
    controls: { thresholds: {}, permits: [], latches_lifted: 0 },
    traceparent: undefined,
    traces: [],
    claimSeconds: 30,
    reportSeconds: 0.05,
    isAway: false,
    isGone: false,
    onReport: undefined,
    hold: false,
    fence() {
      owner = 'another';
      claimedUntil = performance.now() + 60_000;
    },
    expireClaim() {
      claimedUntil = 0;
    },
    reports: [],
    events: [],
    state: undefined,
    async close() {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  return testServer;
}
