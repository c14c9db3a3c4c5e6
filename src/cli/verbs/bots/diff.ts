import type { diffBotVersions } from '../../../api/bots.ts';
import type { Change, FileChange } from '../../../bots/diff-documents.ts';
import { ServiceError } from '../../../base/errors.ts';
import { NO_VALUE } from '../../../base/format.ts';
import { findBot } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { parseCount } from '../../parse-count.ts';
import { showItems, type Columns } from '../../show-items.ts';
import { defineVerb, type Context } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show the differences between two versions or two files',
  description:
    'Compares two versions of a bot on the server, by default the current one and the one before it, with their code; or two bot files, without a server and without code. Lists are compared item by item.',
  arguments: {
    bot: { description: 'id or slug of the bot, or a bot file', complete: 'file' },
    file: { description: 'the other file', optional: true, complete: 'file' },
  },
  options: {
    from: {
      value: 'version',
      description: 'older version; by default the one before --to',
      parse: parseCount,
    },
    to: {
      value: 'version',
      description: 'newer version; by default the current one',
      parse: parseCount,
    },
  },
  settings: ['server_url'],
  examples: [
    'bots diff sma-crossover',
    'bots diff sma-crossover --from 3 --to 5 --json | jq .changes[].pointer',
    'bots diff old.yaml new.yaml',
  ],
  async run(context, { bot, file }, { from, to }) {
    const diff: Diff = await (file === undefined
      ? versionChanges(context, bot, from, to)
      : fileChanges(bot, file, from ?? to));
    const { changes, files = [] } = diff;
    return {
      data: diff,
      show(out) {
        if (changes.length + files.length === 0) out.line('No differences.');
        if (changes.length > 0) showItems(out, changes, COLUMNS);
        if (changes.length > 0 && files.length > 0) out.line();
        if (files.length > 0) showItems(out, files, FILE_COLUMNS);
      },
    };
  },
});

interface Diff {
  readonly changes: readonly Change[];
  /** Only for versions on the server. */
  readonly files?: readonly FileChange[];
}

const COLUMNS: Columns<Change> = {
  pointer: ({ pointer }) => pointer,
  change: ({ kind }) => kind,
  from: ({ from }) => written(from),
  to: ({ to }) => written(to),
};

const FILE_COLUMNS: Columns<FileChange> = {
  file: ({ file }) => file,
  change: ({ kind }) => kind,
  'from sha256': ({ from }) => from ?? NO_VALUE,
  'to sha256': ({ to }) => to ?? NO_VALUE,
};

function written(value: unknown): string {
  return value === undefined ? NO_VALUE : JSON.stringify(value);
}

async function fileChanges(
  before: string,
  after: string,
  version: number | undefined,
): Promise<Diff> {
  if (version !== undefined) {
    throw new ServiceError(
      'usage',
      '--from and --to are versions of a bot, so they cannot be used with files',
    );
  }
  const { readBotFiles } = await import('../../bot-files.ts');
  const [one, other] = readBotFiles([before, after]);
  const { diffDocuments } = await import('../../../bots/diff-documents.ts');
  return { changes: diffDocuments(one!.document, other!.document) };
}

async function versionChanges(
  context: Context,
  bot_ref: string,
  given: number | undefined,
  until: number | undefined,
): Promise<Diff> {
  const server = await connect(context);
  const to = until ?? (await findBot(server, bot_ref)).answer.current_version;
  const from = given ?? to - 1;
  if (from < 1) {
    throw new ServiceError('usage', `there is no version before ${to}`, {
      remedy: 'Name two versions with --from and --to.',
    });
  }
  const { changes, files } = await server.call<typeof diffBotVersions>(
    'get',
    '/bots/{bot_ref}/versions/{version}/diff',
    { params: { bot_ref, version: String(from) }, query: { to } },
  );
  return { changes, files } as Diff;
}
