import type { startStress } from '../../api/compliance.ts';
import { BOT_ARGUMENT } from '../bots.ts';
import { connect } from '../connect.ts';
import { parseCount } from '../count.ts';
import { TEST_OPTIONS, testAnswer } from '../tests.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Takes the peaks of the last six months of production and puts twice as much on the engine and the session code of production, at a simulated venue, with its limits and without that of messages. Without such a history it says what it assumes, and the verdict is provisional at most. With --wait, exit 5 where the verdict is fail, or provisional, which is no pass. The longer the hold, the longer it takes: some minutes by default.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    ...TEST_OPTIONS,
    scope: {
      value: 'scope',
      description: 'whose peaks are taken: of the bot, or of all bots at once',
      choices: ['bot', 'firm'],
      default: 'bot',
    },
    duration: {
      value: 'seconds',
      description: "of the hold at the target, in the venue's time; 1800 by default",
      parse: parseCount,
    },
    multiplier: { value: 'n', description: 'of the peaks; 2 by default', parse: parseCount },
    declaredPeak: {
      value: 'n',
      description: 'messages out at a bar, for whoever has no history yet',
      parse: parseCount,
    },
  },
  settings: ['server_url'],
  examples: [
    'bots stress sma-crossover --wait',
    'bots stress sma-crossover --declared-peak 40 --duration 600 --wait --json | jq .verdict',
  ],
  async run(context, { bot: bot_ref }, { duration, declaredPeak, wait, ...options }) {
    const server = await connect(context);
    const task = await server.call<typeof startStress>('post', '/bots/{bot_ref}/stress', {
      params: { bot_ref },
      body: { ...options, duration_s: duration, declared_peak: declaredPeak },
    });
    return testAnswer(context, server, 'stress', task, wait);
  },
});
