import { ServiceError } from '../../../base/errors.ts';
import { BOT_ARGUMENT, FILE_OPTION, findBot, putBot } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { defineVerb } from '../../verb.ts';

const { short, value, description, complete } = FILE_OPTION;

export const verb = defineVerb({
  summary: 'give a bot of the server a new version',
  description:
    'Makes a new version of the bot from the file, unless the file says what the current one does; or from a proposal that was left for it, with the files of the current version, while that is still the one that the proposal was made for. An archived bot becomes active. Whoever changes the bot in the same moment is not overwritten: then it fails, and can be run again.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    file: { short, value, description, complete },
    proposal: { value: 'id', description: 'proposal, in place of a file' },
  },
  settings: ['server_url'],
  examples: [
    'bots update sma-crossover -f bot.yaml',
    'bots update sma-crossover --proposal 7d2f5c1e-3b8a-4c0d-9e6f-2a1b0c9d8e7f',
  ],
  async run(context, { bot: ref }, { file: path, proposal }) {
    if ((path === undefined) === (proposal === undefined)) {
      throw new ServiceError('usage', 'give either --file or --proposal');
    }
    const { readHostedFiles } = await import('../../bot-files.ts');
    const [own] = path === undefined ? [] : await readHostedFiles([path]);
    const server = await connect(context);
    const found = await findBot(server, ref);
    const { proposedFile } = await import('../../proposals.ts');
    const made = own ?? (await proposedFile(server, found.answer, proposal!));
    const { change, bot } = await putBot(server, made, found);
    return {
      data: { change, bot },
      show: (out) => out.line(`${bot.slug}: ${change}, version ${bot.current_version}`),
    };
  },
});
