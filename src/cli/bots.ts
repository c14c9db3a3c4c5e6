import type { BotDetail, BotSummary, createBot, getBot, updateBot } from '../api/bots.ts';
import type { getBotSnapshot } from '../api/bot-state.ts';
import type { BotReplay, replayBot } from '../api/replay.ts';
import type { BotDeployment, EffectiveHalt } from '../api/tasks.ts';
import type { SourceDocument } from '../bots/document.ts';
import type { Client } from '../client/client.ts';
import type { AnswerOf, RequestOf } from '../client/route.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import { parsePointer } from '../base/parse-pointer.ts';
import { formatActor, formatCountOf, formatMoney } from '../base/format.ts';
import { CHAIN_FAULTS } from '../base/hash-chain.ts';
import type { Columns } from './show-items.ts';
import type { Output } from './output.ts';
import type { Context } from './verb.ts';

export const BOT_ARGUMENT = { description: 'id or slug of the bot; see bots list' } as const;

export const FILE_OPTION = {
  short: 'f',
  value: 'file',
  description: 'bot file, YAML or JSON',
  required: true,
  complete: 'file',
} as const;

export const BOT_KINDS = ['trading', 'research'] as const satisfies readonly BotSummary['kind'][];

export const BOT_STATUSES = [
  'draft',
  'active',
  'archived',
] as const satisfies readonly BotSummary['status'][];

export const BOT_COLUMNS: Columns<BotSummary> = {
  slug: ({ slug }) => slug,
  name: ({ name }) => name,
  kind: ({ kind }) => kind,
  status: ({ status }) => status,
  version: ({ current_version }) => String(current_version),
  id: ({ id }) => id,
};

export const DEPLOYMENT_COLUMNS: Columns<BotDeployment> = {
  deployment: ({ deployment_id }) => deployment_id,
  version: ({ version }) => String(version),
  target: ({ target }) => target,
  status: ({ status }) => status,
  task: ({ task_id }) => task_id,
  created: ({ created_at }) => created_at,
  ended: ({ ended_at }) => ended_at ?? '',
};

export function formatHalt({
  scope,
  at,
  by,
  by_name,
  reason,
}: Omit<EffectiveHalt, 'halt_id'>): string {
  const who = formatActor(by, by_name);
  return `${scope === 'all' ? 'All bots have' : 'The bot has'} been halted since ${at} by ${who}: ${reason}`;
}

/** Returns the bot and the ETag to send as `If-Match` when changing it. */
export function findBot(
  server: Client,
  bot_ref: string,
): Promise<{ readonly answer: BotDetail; readonly etag: string }> {
  return server.callForTag<typeof getBot>('get', '/bots/{bot_ref}', {
    params: { bot_ref },
    headers: {},
  });
}

/** @throws ServiceError `invalid_spec`, `conflict` */
export function createBotFrom(server: Client, file: BotFile): Promise<BotDetail> {
  const { document, files } = file;
  return sendFile(file, () =>
    server.call<typeof createBot>('post', '/bots', {
      body: { document, ...(files && { files }) },
    }),
  );
}

export type BotChange = 'updated' | 'activated' | 'unchanged';

/**
 * Updates a bot from a file, unless the bot has changed since it was read.
 * @throws ServiceError `stale`, `invalid_spec`, `conflict`
 */
export async function putBot(
  server: Client,
  file: BotFile,
  { answer: before, etag }: Awaited<ReturnType<typeof findBot>>,
): Promise<{ readonly change: BotChange; readonly bot: BotDetail }> {
  const bot = await sendFile(file, () =>
    server.call<typeof updateBot>('put', '/bots/{bot_ref}', {
      params: { bot_ref: before.id },
      headers: { 'if-match': etag },
      body: { document: file.document, ...(file.files && { files: file.files }) },
    }),
  );
  if (bot.current_version !== before.current_version) return { change: 'updated', bot };
  return { change: bot.status === before.status ? 'unchanged' : 'activated', bot };
}

/** Asks the server to rebuild the state from the events up to `until`, by default the last event. */
export async function rebuildState(
  server: Client,
  bot_ref: string,
  until: Pick<RequestOf<typeof replayBot>['body'], 'until_seq' | 'until'>,
): Promise<BotReplay> {
  const path = '/bots/{bot_ref}/replay';
  const answer = await server.call<typeof replayBot>('post', path, {
    params: { bot_ref },
    body: until,
  });
  return answer as BotReplay;
}

type Fault = NonNullable<BotReplay['fault']>;

const FAULT_TEXTS: Readonly<Record<Fault['fault'], string>> = {
  ...CHAIN_FAULTS,
  wrong_snapshot: 'leads to another state than the stored snapshot',
};

export function tamperedError(bot: string, { seq, fault }: Fault): ServiceError {
  return new ServiceError('events_tampered', `event ${seq} of ${bot} ${FAULT_TEXTS[fault]}`, {
    reason: fault,
    remedy: 'Find out who can write to the database, and restore it from a backup.',
  });
}

export function showState(out: Output, state: AnswerOf<typeof getBotSnapshot>['state']): void {
  const { versions, sessions, halted, ...rest } = state;
  out.table(
    [{ title: '' }, { title: '' }],
    [
      ...Object.entries(rest).map(([name, value]) => [name, String(value)]),
      ['halted', halted === null ? 'no' : `at ${halted.at} by ${halted.by}: ${halted.reason}`],
      ...Object.entries(sessions).map(([task_id, { status, time, equity }]) => [
        `session ${task_id}`,
        `${status}, ${time ?? 'before its first bars'}, equity ${formatMoney(equity)}`,
      ]),
      ...versions.map((hash, i) => [`version ${i + 1}`, hash]),
    ],
  );
}

export interface BotFile {
  readonly file: string;
  readonly slug: string;
  /** The bot file as its author wrote it, parsed. */
  readonly document: Record<string, unknown>;
  /** Source code and models, as in `Bundle`. */
  readonly files?: Readonly<Record<string, string>> | undefined;
  readonly source: SourceDocument;
  /** Changes that the bot needs before it can trade. */
  readonly notes?: readonly string[];
}

export function showNotes(
  { message }: Pick<Context, 'message'>,
  { file, notes = [] }: BotFile,
): void {
  for (const note of notes) message(`note: ${file}: ${note}`);
}

/** Sends a file. Problems that the server reports get their line and column in the file. */
async function sendFile<T>({ file, source }: BotFile, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'invalid_spec') throw error;
    const problems = error.problems.map(({ pointer = '', ...what }) =>
      source.problem(parsePointer(pointer), what),
    );
    throw invalidFiles([file], problems, error);
  }
}

export function invalidFiles(
  files: readonly string[],
  problems: readonly Problem[],
  cause?: ServiceError,
): ServiceError {
  const what = formatCountOf(problems.length, 'problem');
  return new ServiceError('invalid_spec', `${files.join(', ')}: ${what}`, {
    problems,
    ...(cause?.remedy !== undefined && { remedy: cause.remedy }),
    cause,
  });
}

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;

/** @throws ServiceError `usage` */
export function parseMoment(text: string): string {
  if (MOMENT.test(text) && Number.isFinite(Date.parse(text))) return text;
  throw new ServiceError('usage', `'${text}' is not a time`, {
    remedy: 'Write it as 2026-01-02T03:04:05Z.',
  });
}
