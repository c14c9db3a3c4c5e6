import { expect, it } from 'vitest';
import { seededRandom } from '../../../src/engine/random.ts';
import { isAtLength } from '../../length.ts';
import { measureLuck, randomWalk } from './luck.ts';
import { normals, uniformityP } from './noise.ts';

const [WALKS, BARS, PERMUTATIONS] = isAtLength ? [200, 500, 99] : [40, 200, 19];

it.runIf(isAtLength)(
  `on ${WALKS} random walks, p-values are uniform and overfitting is as likely as not`,
  async () => {
    const normal = normals(1);
    const random = seededRandom(2);
    const ps: number[] = [];
    let pbo = 0;
    for (let walk = 0; walk < WALKS; walk++) {
      const luck = await measureLuck(randomWalk(BARS, normal), PERMUTATIONS);
      // Ties are broken at random, and the step of 1 / (n + 1) is filled.
      const rank = 1 + luck.better + Math.floor(random() * (luck.equal + 1));
      ps.push((rank - random()) / (PERMUTATIONS + 1));
      pbo += luck.pbo / WALKS;
    }
    expect(uniformityP(ps)).toBeGreaterThan(0.01);
    expect(Math.abs(pbo - 0.5)).toBeLessThan(0.1);
  },
);

it.runIf(isAtLength)(
  'an edge with a Sharpe ratio of 4.8 over 500 days is found in at least 80 % of histories',
  async () => {
    const normal = normals(3);
    const histories = isAtLength ? 100 : 12;
    let found = 0;
    let sharpe = 0;
    for (let i = 0; i < histories; i++) {
      const luck = await measureLuck(randomWalk(500, normal, 0.3), 19);
      // p ≤ 0.05
      if (luck.better + luck.equal === 0) found += 1 / histories;
      sharpe += luck.sharpe / histories;
    }
    expect(Math.abs(sharpe - 4.8)).toBeLessThan(0.5);
    expect(found).toBeGreaterThanOrEqual(0.8);
  },
);
