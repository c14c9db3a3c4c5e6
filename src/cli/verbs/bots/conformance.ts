import type { startConformance } from '../../../api/compliance-tests.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { TEST_OPTIONS, testAnswer } from '../../bot-tests.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'run the conformance cases with a bot at a simulated venue',
  description:
    'Runs the conformance cases with the spec and the limits of the bot, and with the engine and the session code of production, at a simulated venue. This does not replace the test at a venue that Article 6 of RTS 6 requires. With --wait, the exit code is 5 if a case failed or is inconclusive. A case that is not run does not count as passed.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    ...TEST_OPTIONS,
    case: { value: 'ids', description: 'run only these cases, such as A01,C03', repeat: true },
  },
  settings: ['server_url'],
  examples: [
    'bots conformance paper --wait',
    'bots conformance paper --case A01,C03 --seed 7 --wait --json | jq .counts',
  ],
  async run(context, { bot: bot_ref }, { version, seed, case: given, wait }) {
    const cases = given.flatMap((ids) => ids.split(',')).filter((one) => one !== '');
    const server = await connect(context);
    const path = '/bots/{bot_ref}/conformance';
    const task = await server.call<typeof startConformance>('post', path, {
      params: { bot_ref },
      body: { version, seed, ...(given.length > 0 && { cases }) },
    });
    return testAnswer(context, server, 'conformance', task, wait);
  },
});
