import { BOT_ARGUMENT, BOT_COLUMNS, DEPLOYMENT_COLUMNS, findBot, formatHalt } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show a bot on the server',
  description:
    'Shows the bot, whether it is halted, its pending and running deployments, and its document as its author wrote it.',
  arguments: { bot: BOT_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots get sma-crossover', 'bots get sma-crossover --json | jq .document > bot.json'],
  async run(context, { bot: ref }) {
    const { stringify } = await import('yaml');
    const server = await connect(context);
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
