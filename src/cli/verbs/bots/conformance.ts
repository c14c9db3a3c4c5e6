import type { startConformance } from '../../../api/compliance.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { connect } from '../../connect.ts';
import { TEST_OPTIONS, testAnswer } from '../../bot-tests.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'test how a bot trades at a simulated venue',
  description:
    'Plays the cases of the conformance catalogue with the spec and the limits of the bot, the engine and the session code of production, at a simulated venue. It never discharges Article 6 of RTS 6, which asks for a test at the venue. With --wait, exit 5 where a case failed or is inconclusive; a case that is not run is no pass either.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    ...TEST_OPTIONS,
    case: { value: 'ids', description: 'only these, such as A01,C03', repeat: true },
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
