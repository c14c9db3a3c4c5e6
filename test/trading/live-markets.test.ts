import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { liveMarkets } from '../../src/trading/live-markets.ts';
import { isAtLength } from '../length.ts';

function openMarkets(ccxt: string) {
  const markets = liveMarkets(
    { some: { ccxt } },
    createLog(() => {}, true),
  );
  onTestFinished(() => markets.stop());
  return markets;
}

test.runIf(isAtLength)('an exchange is chosen only after its check has passed', async () => {
  const chosen = openMarkets('bitstamp').choose('some', ['BTC/USDT'], '1m');
  await expect(chosen).rejects.toMatchObject({
    code: 'conflict',
    message: 'some does not stream bars',
  });
});

test('a choice that waits for its check fails when the thread stops', async () => {
  const markets = openMarkets('binance');
  const chosen = markets.choose('some', ['BTC/USDT'], '1m');
  await Promise.all([
    expect(chosen).rejects.toMatchObject({ code: 'exchange_unavailable' }),
    markets.stop(),
  ]);
});
