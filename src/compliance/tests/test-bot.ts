import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getBot } from '../../fleet/registry/bots.ts';
import { gzipFile } from '../../base/gzip-file.ts';
import type { TestBot } from '../../fleet/tasks/task-attempt.ts';
import type { TaskService } from '../../fleet/tasks/tasks.ts';
import { proveIsolation, takeFingerprint, type Isolation } from '../stress/isolation.ts';
import { readHistory } from '../stress/history.ts';
import type { StressResult } from '../stress/run.ts';
import {
  summarizeReport,
  buildTestLock,
  type ConformanceReport,
  type StressReport,
} from './result.ts';
import type { ConformanceInput, StressInput } from './start.ts';
import { testInThread } from './test-thread.ts';

const METHOD =
  'The test runs the engine and the session code of production with the spec and the limits of the bot at a simulated venue. The test creates the orders; the code of the strategy is not run. Thresholds and overrides under Article 15(5) and (6) do not apply in the test. It does not replace a test at the venue itself.';

/** Runs tests of bots as tasks and adds to each result the proof of isolation from production. */
export function createTestBot({ storage, clock }: Pick<TaskService, 'storage' | 'clock'>): TestBot {
  return async (claim, tested, { directory, signal, onProgress, persist }) => {
    const { task_id: run_id, bot_id, version } = claim;
    const input = JSON.parse(claim.input) as ConformanceInput | StressInput;
    const scopeBotId = 'scope' in input && input.scope === 'firm' ? undefined : bot_id;
    const { slug } = await persist(() => getBot(storage.read, bot_id));
    const fingerprint = () => persist(() => takeFingerprint(storage, scopeBotId, clock()));
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const before = await fingerprint();
    const checkIsolation = async (): Promise<Isolation> => {
      const after = await fingerprint();
      return persist(() => proveIsolation(storage, run_id, before, after));
    };
    const own = {
      run_id,
      bot_ref: slug,
      version,
      lock: buildTestLock(tested.document, tested.files),
      discharges_art6: false,
      venue_report: null,
      method: METHOD,
    } as const;
    if (!('scope' in input)) {
      const evidence = join(directory, EVIDENCE);
      const work = { kind: 'conformance', ...tested, ...input, evidence } as const;
      const result = await testInThread(work, signal, onProgress);
      const report: ConformanceReport = { ...result, ...own, isolation: await checkIsolation() };
      await gzipFile(evidence);
      await writeGzip(directory, 'conformance.json', report);
      const { counts, evidence_hash } = report;
      return {
        result: summarizeReport(report),
        summary: { counts, evidence_hash },
        files: ['conformance.json', EVIDENCE],
      };
    }
    const history = await persist(() =>
      readHistory(storage, { bot_id: scopeBotId, asOf: clock() }),
    );
    const work = { kind: 'stress', ...tested, ...input, history, directory } as const;
    const { method, ...measured } = await testInThread(work, signal, onProgress);
    const isolation = await checkIsolation();
    const report: StressReport = {
      ...measured,
      ...own,
      method: `${METHOD} ${method}`,
      isolation,
      ...judgeIsolation(measured, isolation),
    };
    await writeGzip(directory, 'stress.json', report);
    const { verdict, basis } = report;
    return { result: report, summary: { verdict, basis }, files: ['stress.json'] };
  };
}

const EVIDENCE = 'evidence.ndjson';

async function writeGzip(directory: string, name: string, document: object): Promise<void> {
  const path = join(directory, name);
  await writeFile(path, `${JSON.stringify(document, undefined, 2)}\n`, { mode: 0o600 });
  await gzipFile(path);
}

/** Lowers the verdict of a test that was not isolated from production. */
function judgeIsolation(
  { verdict, reasons }: Pick<StressResult, 'verdict' | 'reasons'>,
  { logs_kept, orders_of_test, config_unchanged, changed }: Isolation,
): Pick<StressResult, 'verdict' | 'reasons'> {
  const faults = [
    ...(logs_kept ? [] : ['the production log was altered during the test']),
    ...(orders_of_test === 0
      ? []
      : [`the production log has ${orders_of_test} order events of the test`]),
  ];
  const doubts = config_unchanged
    ? []
    : [
        `a bot was changed or deployed during the test: ${changed.join('; ')}. Run the test again without changing or deploying bots`,
      ];
  const lowered = doubts.length > 0 && verdict === 'pass' ? 'provisional' : verdict;
  return {
    verdict: faults.length > 0 ? 'fail' : lowered,
    reasons: [
      ...faults.map((fault) => `isolation: ${fault}`),
      ...reasons,
      ...doubts.map((doubt) => `isolation: ${doubt}`),
    ],
  };
}
