import type { BotDetail } from '../../../api/bots.ts';
import type { Client } from '../../../client/client.ts';
import { ServiceError } from '../../../base/errors.ts';
import {
  createBotFrom,
  FILE_OPTION,
  findBot,
  putBot,
  showNotes,
  type BotChange,
  type BotFile,
} from '../../bots.ts';
import { connect } from '../../connect.ts';
import { findOptional } from '../../find-optional.ts';
import { defineVerb } from '../../verb.ts';

interface Applied {
  readonly file: string;
  readonly change: 'created' | BotChange;
  readonly bot: BotDetail;
}

export const verb = defineVerb({
  summary: 'create or update bots on the server from files',
  description:
    'Creates or updates the bot with the slug of each file, and skips a bot that has not changed. All files are checked before the first one is sent. If the server rejects a file, the files before it are applied, and the files after it are not.',
  options: { file: { ...FILE_OPTION, repeat: true } },
  settings: ['server_url'],
  examples: ['bots apply -f bot.yaml', 'bots apply -f trend.yaml -f pairs.yaml --json'],
  async run(context, _args, { file: paths }) {
    const { readHostedFiles } = await import('../../bot-files.ts');
    const files = await readHostedFiles(paths);
    const twice = files.find(({ slug }, i) => files.findIndex((one) => one.slug === slug) < i);
    if (twice) {
      throw new ServiceError(
        'usage',
        `${twice.file}: another file has the same slug, ${twice.slug}`,
      );
    }
    const server = await connect(context);
    const applied: Applied[] = [];
    let failure: ServiceError | undefined;
    for (const file of files) {
      try {
        applied.push({ file: file.file, ...(await apply(server, file)) });
        showNotes(context, file);
      } catch (error) {
        if (!(error instanceof ServiceError) || applied.length === 0) throw error;
        failure = error;
        break;
      }
    }
    return {
      data: { applied },
      show(out) {
        for (const { file, change, bot } of applied) {
          out.line(`${file}: ${bot.slug} ${change}, version ${bot.current_version}`);
        }
      },
      failure,
    };
  },
});

async function apply(server: Client, file: BotFile): Promise<Omit<Applied, 'file'>> {
  const found = await findOptional(findBot(server, file.slug));
  return found === undefined
    ? { change: 'created', bot: await createBotFrom(server, file) }
    : putBot(server, file, found);
}
