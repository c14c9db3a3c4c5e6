/** See https://html.spec.whatwg.org/multipage/server-sent-events.html. */
export interface ServerSentEvent {
  /** The last id so far in the stream; empty before the first one. */
  readonly id: string;
  /** Event type; `message` by default. */
  readonly event: string;
  readonly data: string;
}

/** Skips comments, unknown fields, and an event that the end of the stream cuts off. */
export async function* serverSentEvents(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerSentEvent, void, void> {
  let id = '';
  let event = '';
  let data: string[] = [];
  for await (const line of linesOf(bytes)) {
    if (line === '') {
      if (data.length > 0) yield { id, event: event || 'message', data: data.join('\n') };
      event = '';
      data = [];
      continue;
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line)!;
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
  }
}

/** Lines may end with CR LF, LF or CR. */
export async function* linesOf(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of bytes) {
    // A final CR is kept back, because the next chunk may begin with the LF of the same line end.
    const [, whole, end] = /^(.*?)(\r?)$/s.exec(rest + decoder.decode(chunk, { stream: true }))!;
    const lines = whole!.split(/\r\n|\n|\r/);
    rest = lines.pop()! + end!;
    yield* lines;
  }
}
