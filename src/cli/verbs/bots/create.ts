import { BOT_COLUMNS, createBotFrom, FILE_OPTION, showNotes } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'create a bot on the server from a file',
  description:
    'Checks the file and creates a bot from it on the server: a draft at version 1, with the files of your own strategy if it has one. Fails if a bot with this slug exists.',
  options: { file: FILE_OPTION },
  settings: ['server_url'],
  examples: ['bots create -f bot.yaml'],
  async run(context, _args, { file: path }) {
    const { readHostedFiles } = await import('../../bot-files.ts');
    const [file] = await readHostedFiles([path]);
    const server = await connect(context);
    const bot = await createBotFrom(server, file!);
    showNotes(context, file!);
    return { data: bot, show: (out) => showItems(out, [bot], BOT_COLUMNS) };
  },
});
