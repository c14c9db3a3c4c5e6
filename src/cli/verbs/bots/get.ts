import { BOT_ARGUMENT, BOT_COLUMNS, DEPLOYMENT_COLUMNS, findBot, formatHalt } from '../../bots.ts';
import { showItems } from '../../show-items.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'show a bot on the server',
  description:
    'Shows the bot, whether it is halted, its pending and running deployments, and its document as its author wrote it.',
  arguments: { bot: BOT_ARGUMENT },
  examples: ['bots get sma-crossover', 'bots get sma-crossover --json | jq .document > bot.json'],
  async run(server, { bot: ref }) {
    const { stringify } = await import('yaml');
    const { answer: bot } = await findBot(server, ref);
    const { active_deployments: active, active_deployment_count: count, halted } = bot;
    return {
      data: bot,
      show(out) {
        showItems(out, [bot], BOT_COLUMNS);
        out.line(`hash ${bot.version_hash}`);
        out.line(`created ${bot.created_at}, updated ${bot.updated_at}`);
        if (halted !== null) out.line(formatHalt(halted));
        if (count > 0) {
          out.line();
          showItems(out, active, DEPLOYMENT_COLUMNS);
          if (count > active.length) out.line(`These are the newest of ${count}.`);
        }
        out.line();
        out.line(stringify(bot.document).trimEnd());
      },
    };
  },
});
