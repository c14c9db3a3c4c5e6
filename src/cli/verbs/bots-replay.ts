import { ServiceError } from '../../errors.ts';
import { BOT_ARGUMENT, parseMoment, replay, showState, tampered } from '../bots.ts';
import { connect } from '../connect.ts';
import { parseCount } from '../count.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Makes the state of the bot anew from every event since the first, trusting no snapshot, and checks the hash chain on the way. Exit 1, naming the first bad event, where one is not as it was written.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    untilSeq: { value: 'seq', description: 'not beyond this event', parse: parseCount },
    until: { value: 'time', description: 'as it was recorded by then', parse: parseMoment },
  },
  settings: ['server_url'],
  examples: ['bots replay sma-crossover', 'bots replay sma-crossover --until-seq 2 --json'],
  async run(context, { bot }, { untilSeq: until_seq, until }) {
    if (until_seq !== undefined && until !== undefined) {
      throw new ServiceError('usage', '--until-seq and --until exclude each other');
    }
    const replayed = await replay(await connect(context), bot, { until_seq, until });
    const { seq, state, state_hash, fault } = replayed;
    return {
      data: replayed,
      show(out) {
        if (state !== null) showState(out, state);
        out.line();
        out.line(`After event ${seq}; state hash ${state_hash}`);
      },
      failure: fault ? tampered(bot, fault) : undefined,
    };
  },
});
