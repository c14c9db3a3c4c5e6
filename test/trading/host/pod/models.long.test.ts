import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { onnxFile } from '../../../../examples/models/onnx-file.ts';
import { specOf, TANH } from '../../../bots/models/models.ts';
import { BTC, newWorld, soon, SPEC, STRATEGY } from './world.ts';

/** Says that what rises, rises. */
const BYTES = onnxFile({ ...TANH, weights: [{ name: 'w', dims: [2, 1], values: [50, 0] }] });
const MODEL = specOf(BYTES, {
  inputs: [{ indicator: 'return', params: { period: 1 } }, { column: 'close' }],
});
const BUNDLE = { 'm.onnx': Buffer.from(BYTES).toString('base64') };

test('a bot with a model trades at an exchange, and restores the model inputs after a restart', async (context) => {
  const world = await newWorld(context);
  const { server, bar, directory } = world;
  const strategy = { name: 'model_signal', params: { enter: 0.01, exit: 0.01 } };
  const spec = { ...SPEC.spec, strategy, ml_models: [MODEL] };
  writeFileSync(join(directory, 'bot.json'), JSON.stringify({ ...SPEC, spec }));
  writeFileSync(join(directory, 'bundle.json'), JSON.stringify(BUNDLE));
  const config = world.change({ bundle: './bundle.json' });
  const first = await world.begin({ config });
  await bar(100);
  await bar(101);
  await vi.waitFor(() => expect(server.state?.positions[BTC]).toBeGreaterThan(0), soon);
  await bar(102);
  const bars = () => server.events.filter(({ kind }) => kind === 'data.bars');
  await vi.waitFor(() => expect(bars()).toHaveLength(3), soon);
  first.stop();
  await first.done;
  // This process has the previous bar only from its log.
  const second = await world.begin({ config });
  await bar(101);
  await vi.waitFor(() => expect(server.state).toMatchObject({ positions: {} }), soon);
  second.stop();
  await second.done;
});

test('custom code is rejected at an exchange, even with a model', async (context) => {
  const world = await newWorld(context);
  const files = { ...BUNDLE, 'told.mjs': STRATEGY };
  writeFileSync(join(world.directory, 'bundle.json'), JSON.stringify(files));
  const config = world.change({ bundle: './bundle.json' });
  await expect(world.run({ config }).done).rejects.toMatchObject({
    code: 'invalid_setting',
    message: expect.stringContaining('has the code of a strategy'),
  });
});
