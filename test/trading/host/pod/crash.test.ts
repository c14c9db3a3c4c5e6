import { expect, test } from 'vitest';
import { crash } from './crash.ts';
import { isAtLength } from '../../../length.ts';

test('a runner that is killed at random moments places no order twice, loses none, and reports every event', async () => {
  const seeds = Array.from({ length: isAtLength ? 16 : 1 }, (_, i) => 1 + i);
  const kills = await Promise.all(seeds.map((seed) => crash(seed, 3)));
  expect(kills.reduce((sum, count) => sum + count)).toBeGreaterThan(seeds.length);
});
