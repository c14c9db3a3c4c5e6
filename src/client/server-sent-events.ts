/** One that a server sent; see https://html.spec.whatwg.org/multipage/server-sent-events.html. */
export interface ServerSentEvent {
  /** Of the last event that had one; empty before there was any. */
  readonly id: string;
  /** `message` where it has no name. */
  readonly event: string;
  readonly data: string;
}

/** What is not over when the stream ends is no event. Comments, and fields of no use here, are skipped. */
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

async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of bytes) {
    // A line feed may follow in the next part: with what is before it, it is one end of a line.
    const [, whole, end] = /^(.*?)(\r?)$/s.exec(rest + decoder.decode(chunk, { stream: true }))!;
    const lines = whole!.split(/\r\n|\n|\r/);
    rest = lines.pop()! + end!;
    yield* lines;
  }
}
