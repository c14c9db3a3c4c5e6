import type { diffBotVersions } from '../../api/bots.ts';
import type { Change } from '../../bots/diff.ts';
import { ServiceError } from '../../errors.ts';
import { NO_VALUE } from '../../format.ts';
import { findBot } from '../bots.ts';
import { connect } from '../connect.ts';
import { parseCount } from '../count.ts';
import { showItems, type Columns } from '../items.ts';
import { defineVerb, type Context } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Compares two versions of a bot of the server, by default the current one and the one before it; or two bot files, for which no server is asked. Lists are compared place by place.',
  arguments: {
    bot: { description: 'id or slug of the bot, or a bot file', complete: 'file' },
    file: { description: 'the other file', optional: true, complete: 'file' },
  },
  options: {
    from: { value: 'version', description: 'the one before --to when absent', parse: parseCount },
    to: { value: 'version', description: 'the current one when absent', parse: parseCount },
  },
  settings: ['server_url'],
  examples: [
    'bots diff sma-crossover',
    'bots diff sma-crossover --from 3 --to 5 --json | jq .changes[].pointer',
    'bots diff old.yaml new.yaml',
  ],
  async run(context, { bot, file }, { from, to }) {
    const changes = await (file === undefined
      ? versionChanges(context, bot, from, to)
      : fileChanges(bot, file, from ?? to));
    return {
      data: { changes },
      show(out) {
        if (changes.length === 0) out.line('There is no difference.');
        else showItems(out, changes, COLUMNS);
      },
    };
  },
});

const COLUMNS: Columns<Change> = {
  pointer: ({ pointer }) => pointer,
  change: ({ kind }) => kind,
  from: ({ from }) => written(from),
  to: ({ to }) => written(to),
};

function written(value: unknown): string {
  return value === undefined ? NO_VALUE : JSON.stringify(value);
}

async function fileChanges(
  before: string,
  after: string,
  version: number | undefined,
): Promise<readonly Change[]> {
  if (version !== undefined) {
    throw new ServiceError('usage', '--from and --to are versions of a bot, and files have none');
  }
  const { readBotFiles } = await import('../bot-files.ts');
  const [one, other] = readBotFiles([before, after]);
  const { diffDocuments } = await import('../../bots/diff.ts');
  return diffDocuments(one!.document, other!.document);
}

async function versionChanges(
  context: Context,
  bot_ref: string,
  given: number | undefined,
  until: number | undefined,
): Promise<readonly Change[]> {
  const server = await connect(context);
  const to = until ?? (await findBot(server, bot_ref)).answer.current_version;
  const from = given ?? to - 1;
  if (from < 1) {
    throw new ServiceError('usage', `there is no version before ${to}`, {
      remedy: 'Name two versions with --from and --to.',
    });
  }
  const { changes } = await server.call<typeof diffBotVersions>(
    'get',
    '/bots/{bot_ref}/versions/{version}/diff',
    { params: { bot_ref, version: String(from) }, query: { to } },
  );
  return changes;
}
