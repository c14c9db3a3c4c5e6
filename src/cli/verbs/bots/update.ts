import { ServiceError } from '../../../base/errors.ts';
import { BOT_ARGUMENT, FILE_OPTION, findBot, putBot, showNotes } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { defineVerb } from '../../verb.ts';

const { short, value, description, complete } = FILE_OPTION;

export const verb = defineVerb({
  summary: 'create a new version of a bot on the server',
  description:
    'Creates a new version of the bot from a file, unless it equals the current version; or from a proposal, with the files of the current version, which must be the version that the proposal was made for. An archived bot becomes active. If someone else changes the bot at the same time, the update fails; run it again.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    file: { short, value, description, complete },
    proposal: { value: 'id', description: 'id of a proposal to use instead of a file' },
  },
  settings: ['server_url'],
  examples: [
    'bots update sma-crossover -f bot.yaml',
    'bots update sma-crossover --proposal 7d2f5c1e-3b8a-4c0d-9e6f-2a1b0c9d8e7f',
  ],
  async run(context, { bot: ref }, { file: path, proposal }) {
    if ((path === undefined) === (proposal === undefined)) {
      throw new ServiceError('usage', 'exactly one of --file and --proposal is required');
    }
    const { readHostedFiles } = await import('../../bot-files.ts');
    const [own] = path === undefined ? [] : await readHostedFiles([path]);
    const server = await connect(context);
    const found = await findBot(server, ref);
    const { proposedFile } = await import('../../proposals.ts');
    const made = own ?? (await proposedFile(server, found.answer, proposal!));
    const { change, bot } = await putBot(server, made, found);
    showNotes(context, made);
    return {
      data: { change, bot },
      show: (out) => out.line(`${bot.slug}: ${change}, version ${bot.current_version}`),
    };
  },
});
