import type { startStress } from '../../../api/compliance-tests.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { parseCountIn } from '../../parse-count.ts';
import { TEST_OPTIONS, testAnswer } from '../../bot-tests.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'test a bot at twice its peak load of the last six months',
  description:
    'Takes the peaks of the last six months of production and applies twice that load to the production engine and session code at a simulated venue: once with all limits, once without the message limit. Without such a history, the result states the assumption, and the verdict is at best provisional. With --wait, the exit code is 5 if the verdict is fail or provisional, and 8 if it is inconclusive because the host was too busy. If someone changes, archives or deploys the bot during the test, the verdict is also at best provisional, and the result names that person. With the default duration, the test takes some minutes.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    ...TEST_OPTIONS,
    scope: {
      value: 'scope',
      description: 'take the peaks of the bot, or of all bots together',
      choices: ['bot', 'firm'],
      default: 'bot',
    },
    duration: {
      value: 'seconds',
      description:
        'duration of the load at the target, in venue time, from 60 to 86400; 1800 by default',
      parse: parseCountIn(60, 86_400),
    },
    multiplier: {
      value: 'n',
      description: 'multiplier of the peaks, from 2 to 100; 2 by default',
      parse: parseCountIn(2, 100),
    },
    declaredPeak: {
      value: 'n',
      description:
        'messages sent per bar, from 1 to 10000, for a bot without history; at most 20000 after multiplication',
      parse: parseCountIn(1, 10_000),
    },
  },
  examples: [
    'bots stress paper --wait',
    'bots stress paper --declared-peak 40 --duration 600 --wait --json | jq .verdict',
  ],
  async run(server, { bot: bot_ref }, { duration, declaredPeak, wait, ...options }, context) {
    const task = await server.call<typeof startStress>('post', '/bots/{bot_ref}/stress', {
      params: { bot_ref },
      body: { ...options, duration_s: duration, declared_peak: declaredPeak },
    });
    return testAnswer(context, server, 'stress', task, wait);
  },
});
