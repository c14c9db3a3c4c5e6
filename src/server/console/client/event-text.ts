/** Fields of the events of a chat, each of which has some. */
interface ChatPayload {
  readonly prompt?: { readonly text: string };
  readonly tool?: string;
  readonly answer?: { readonly text: string };
  readonly status?: string;
}

/**
 * Summarizes an event in one line; shows the payload of an unknown kind as JSON. Runs both on the
 * server and in the browser.
 */
export function eventText(kind: string, payload: Readonly<Record<string, unknown>>): string {
  const MAX_LENGTH = 240;
  const number = (value: unknown): string =>
    typeof value === 'number'
      ? value
          .toLocaleString('en-US', { maximumFractionDigits: 4, signDisplay: 'negative' })
          .replace('-', '−')
      : String(value);
  const of = (name: string): string => number(payload[name]);
  const order = `order ${of('order')}`;
  const chat = (): string | undefined => {
    const { prompt, answer, tool, status } = payload as ChatPayload;
    if (prompt !== undefined) return `asked: ${prompt.text}`;
    return answer === undefined ? (tool ?? status) : `answered: ${answer.text}`;
  };
  const words = (): string | undefined => {
    if (kind === 'data.bars') {
      const bars = Object.entries(payload['bars'] as Readonly<Record<string, readonly number[]>>);
      return bars
        .map(
          ([symbol, [open, high, low, close]]) =>
            `${symbol} ${number(open)} to ${number(close)} (${number(low)}–${number(high)})`,
        )
        .join(', ');
    }
    if (kind === 'order.submitted') {
      const { quantity, weight, stop, limit } = payload;
      const size =
        typeof weight === 'number' ? `to ${number(100 * weight)} % of equity` : number(quantity);
      const prices = Object.entries({ stop, limit })
        .filter(([, price]) => price !== undefined)
        .map(([name, price]) => `, ${name} ${number(price)}`);
      const type = of('type').replace('_', ' ');
      return `${order}: ${of('side')} ${of('symbol')} ${size}, ${type}${prices.join('')}`;
    }
    if (kind === 'order.filled') {
      return `${order}: ${of('side')} ${of('quantity')} ${of('symbol')} at ${of('price')}; position ${of('position')}`;
    }
    if (kind === 'order.triggered') return `${order}: ${of('symbol')}`;
    if (kind === 'order.corrected') {
      return `${order}: ${of('quantity')} ${of('symbol')} at ${of('price')}; position ${of('position')}`;
    }
    if (kind.startsWith('order.')) {
      return `${order}: ${of('symbol')}, ${of('reason').replaceAll('_', ' ')}`;
    }
    if (kind === 'alert.raised') return `${of('severity')}: ${of('control').replaceAll('_', ' ')}`;
    if (kind === 'session.state') {
      const held = Object.keys(payload['positions'] as object).length;
      const working = (payload['working'] as readonly unknown[]).length;
      return `equity ${of('equity')}, cash ${of('cash')}, positions ${held}, working orders ${working}`;
    }
    if (kind === 'strategy.log') return (payload['lines'] as readonly string[]).join('; ');
    if (kind.startsWith('chat.')) return chat();
    if (kind === 'data.gap') return `${of('symbol')}: ${of('missing')} bars missing`;
    if (kind === 'data.refused') return `${of('symbol')}: ${of('reason')}`;
    if (kind === 'run.queued')
      return `${number(payload['test'] ?? payload['target'])}, requested by ${of('by')}`;
    if (kind === 'run.started') return `attempt ${of('attempt')}`;
    if (kind === 'run.ended') {
      const { error } = payload as { readonly error?: { readonly message: string } };
      return error === undefined ? of('status') : `${of('status')}: ${error.message}`;
    }
    if (kind.startsWith('bot.')) {
      const { by, ...rest } = payload;
      return [
        ...Object.values(rest).map(number),
        ...(by === undefined ? [] : [`by ${of('by')}`]),
      ].join(', ');
    }
    if (kind === 'version.created') return `${of('hash').slice(0, 16)}…`;
    if (kind === 'deploy.planned') return `${of('cluster')}, namespace ${of('namespace')}`;
    if (kind === 'deploy.ended') {
      return `${of('why')}, orders ${payload['verified'] === true ? 'verified' : 'not verified'}`;
    }
    if (kind.startsWith('deploy.')) {
      const { reason, message } = payload;
      return [reason, message].filter((part) => typeof part === 'string').join(': ');
    }
    if (kind === 'venue.phase' || kind === 'venue.halted') return `${of('symbol')}: ${of('phase')}`;
    if (kind === 'venue.report') return `${order}: ${of('status')}`;
    if (kind === 'control.denying')
      return payload['reason'] === null ? 'trades again' : of('reason');
    if (kind.startsWith('control.')) return `${of('reason')} (${of('by')})`;
    return undefined;
  };
  let text: string | undefined;
  try {
    text = words();
  } catch {
    // The payload lacks a field that events of this kind have.
  }
  text ??= JSON.stringify(payload);
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
}
