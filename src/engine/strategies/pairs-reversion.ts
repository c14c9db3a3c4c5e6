import { log, ratio } from '../indicators/arithmetic.ts';
import { zScore } from '../indicators/z-score.ts';
import { integer, number } from '../params.ts';
import { above, all, any, below } from '../series/condition.ts';
import { defineStrategy } from '../strategy.ts';

/**
 * Market-neutral: follows the z-score of log(first / second) over `lookback` bars. Beyond `entry` it
 * sells the dear instrument and buys the cheap one, half of equity each; within `exit` it closes
 * both.
 */
export const pairsReversion = defineStrategy({
  name: 'pairs_reversion',
  description:
    'Sells the dearer and buys the cheaper of two instruments until their ratio is near its mean.',
  params: {
    lookback: integer({ default: 60, min: 2, description: 'Number of bars of the z-score.' }),
    entry: number({
      default: 2,
      min: 0,
      description: 'Opens beyond this number of standard deviations.',
    }),
    exit: number({
      default: 0.5,
      min: 0,
      description: 'Closes within this number of standard deviations.',
    }),
  },
  instruments: { min: 2, max: 2 },
  shorts: true,
  check: ({ entry, exit }) => (exit < entry ? undefined : 'exit must be below entry'),
  indicators: ({ params, instruments: [first, second] }) =>
    zScore(log(ratio(first.close, second!.close)), params.lookback),
  wakeOn: (score, { entry, exit }) =>
    any(above(score, entry), below(score, -entry), all(below(score, exit), above(score, -exit))),
  create({ params, instruments, indicators: score, broker }) {
    const [first] = instruments;
    const second = instruments[1]!;
    const hold = (weight: number): void => {
      broker.target(first, weight);
      broker.target(second, -weight);
    };
    return {
      onBar() {
        if (!first.fresh || !second.fresh) return;
        // One leg may be open alone, while the other waits for a bar or after it was denied.
        const side = Math.sign(broker.position(first) || -broker.position(second));
        if (score.value > params.entry && side >= 0) hold(-0.5);
        else if (score.value < -params.entry && side <= 0) hold(0.5);
        else if (side !== 0 && Math.abs(score.value) < params.exit) hold(0);
      },
    };
  },
});
