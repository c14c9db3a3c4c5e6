import { BOT_ARGUMENT, FILE_OPTION, findBot, putBot } from '../bots.ts';
import { connect } from '../connect.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Makes a new version of the bot from the file, unless the file says what the current one does. An archived bot becomes active. Whoever changes the bot in the same moment is not overwritten: then it fails, and can be run again.',
  arguments: { bot: BOT_ARGUMENT },
  options: { file: FILE_OPTION },
  settings: ['server_url'],
  examples: ['bots update sma-crossover -f bot.yaml'],
  async run(context, { bot: ref }, { file: path }) {
    const { readHostedFiles } = await import('../bot-files.ts');
    const [file] = readHostedFiles([path]);
    const server = await connect(context);
    const { change, bot } = await putBot(server, file!, await findBot(server, ref));
    return {
      data: { change, bot },
      show: (out) => out.line(`${bot.slug}: ${change}, version ${bot.current_version}`),
    };
  },
});
