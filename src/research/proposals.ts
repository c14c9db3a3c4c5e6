import { randomUUID } from 'node:crypto';
import { getBot } from '../fleet/registry/bots.ts';
import { getRunnableVersion } from '../fleet/registry/versions.ts';
import { diffDocuments, type Change } from '../bots/diff-documents.ts';
import { invalidSpec, readChangedSpec, type SpecChanges } from '../bots/hosted.ts';
import { specHash } from '../bots/spec-lock.ts';
import { ServiceError } from '../base/errors.ts';
import { appendEvents } from '../events/append.ts';
import type { Storage } from '../storage/storage.ts';
import type { Db } from '../storage/tables.ts';
import { proposalProblems } from './proposal-problems.ts';
import { startBacktest, type Task, type TaskService } from '../fleet/tasks/tasks.ts';

export interface Proposal {
  readonly proposal_id: string;
  /** Version that the proposal would replace. */
  readonly base_version: number;
  readonly changes: Change[];
  /** Hash of the proposed document; see `specHash`. */
  readonly hash: string;
  /** Command with which a person accepts the proposal as the next version. */
  readonly apply_with: string;
  readonly task: Pick<Task, 'task_id' | 'status'>;
}

/**
 * Proposes a version of a bot: queues its backtest and records the whole proposal as an event, in one
 * transaction. The spec of the bot does not change. As with any backtest, a draft becomes active.
 *
 * @param by actor, as in the audit log.
 * @throws ServiceError like `startBacktest`; `invalid_spec` also for changes that only a person may
 * make (see `proposalProblems`); `conflict` with the reason `no_change`.
 */
export async function proposeVersion(
  service: TaskService,
  by: string,
  ref: string,
  { rationale, ...asked }: SpecChanges & { readonly rationale: string },
): Promise<Proposal> {
  const { storage, clock } = service;
  const bot = await getBot(storage.read, ref);
  const { bot_id, current_version: base_version } = bot;
  const { document: before, files } = await getRunnableVersion(service, bot_id, base_version);
  const { document, spec } = readChangedSpec(before, asked, files);
  const problems = proposalProblems(readChangedSpec(before, {}, files).spec, spec);
  if (problems.length > 0) throw invalidSpec(problems, false);
  const changes = diffDocuments(before, document);
  if (changes.length === 0) {
    throw new ServiceError(
      'conflict',
      `the proposal equals version ${base_version} of ${bot.slug}`,
      {
        reason: 'no_change',
        remedy: 'Change at least one value.',
      },
    );
  }
  const proposal_id = randomUUID();
  const proposal = {
    proposal_id,
    base_version,
    changes,
    hash: specHash(document),
    apply_with: `service-local bots update ${bot.slug} --proposal ${proposal_id}`,
  };
  // Extends the transaction of `startBacktest`, so that the task and the event are written together.
  const write = (<T>(work: (tx: Db) => Promise<T>) =>
    storage.write(async (tx): Promise<Proposal> => {
      const task = (await work(tx)) as Proposal['task'];
      const now = clock();
      const payload = { ...proposal, document, rationale, task_id: task.task_id, by };
      const event = { kind: 'chat.proposal', version: base_version, occurred_at: now, payload };
      await appendEvents(tx, bot_id, now, [event]);
      return { ...proposal, task };
    })) as unknown as Storage['write'];
  const request = { ...asked, version: base_version };
  const made = await startBacktest(
    { ...service, storage: { ...storage, write } },
    by,
    bot_id,
    request,
  );
  return made as unknown as Proposal;
}
