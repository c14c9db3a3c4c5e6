import { ZScore } from '../indicators/z-score.ts';
import { integer, number } from '../params.ts';
import { defineStrategy } from '../strategy.ts';

/**
 * Market-neutral: follows the z-score of log(first / second) over `lookback` bars. Beyond `entry` it
 * sells the dear instrument and buys the cheap one, half of equity each; within `exit` it closes
 * both.
 */
export const pairsReversion = defineStrategy({
  name: 'pairs_reversion',
  description:
    'Sells the dear and buys the cheap one of two instruments until their ratio is normal.',
  params: {
    lookback: integer({ default: 60, min: 2, description: 'Bars of the z-score.' }),
    entry: number({ default: 2, min: 0, description: 'Opens beyond this many deviations.' }),
    exit: number({ default: 0.5, min: 0, description: 'Closes within this many deviations.' }),
  },
  instruments: { min: 2, max: 2 },
  shorts: true,
  check: ({ entry, exit }) => (exit < entry ? undefined : 'exit must be below entry'),
  create({ params, instruments, broker }) {
    const first = instruments[0];
    const second = instruments[1]!;
    const zScore = new ZScore(params.lookback);
    const hold = (weight: number): void => {
      broker.target(first, weight);
      broker.target(second, -weight);
    };
    return {
      onBar() {
        if (!first.fresh || !second.fresh) return;
        const z = zScore.next(Math.log(first.close / second.close));
        // One leg may be open alone, while the other waits for a bar or after it was denied.
        const side = Math.sign(broker.position(first) || -broker.position(second));
        if (z > params.entry && side >= 0) hold(-0.5);
        else if (z < -params.entry && side <= 0) hold(0.5);
        else if (side !== 0 && Math.abs(z) < params.exit) hold(0);
      },
    };
  },
});
