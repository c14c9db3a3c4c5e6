import koffi from 'koffi';

const libc = koffi.load(null);
const socket = libc.func('int socket(int, int, int)');
const bind = libc.func('int bind(int, void *, unsigned int)');
const recv = libc.func('long recv(int, _Out_ void *, size_t, int)');
const close = libc.func('int close(int)');

const AF_UNIX = 1;
const SOCK_DGRAM = 2;

/** The socket at which systemd hears of its services; Linux only. */
export interface ServiceManagerSocket {
  /** The next message. */
  readonly next: () => Promise<string>;
  /** The next that contains this; those before it are passed over. */
  readonly until: (part: string) => Promise<string>;
  readonly close: () => void;
}

/** @param name as in NOTIFY_SOCKET. */
export function listenAt(name: string): ServiceManagerSocket {
  const path = Buffer.from(name);
  if (name.startsWith('@')) path[0] = 0;
  const end = name.startsWith('@') ? [] : [Buffer.alloc(1)];
  const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), path, ...end]);
  const fd = socket(AF_UNIX, SOCK_DGRAM, 0) as number;
  if (bind(fd, address, address.length) !== 0) throw new Error(`cannot listen at ${name}`);
  const next = async (): Promise<string> => {
    const buffer = Buffer.alloc(4096);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    // Waits on a thread of its own.
    recv.async(fd, buffer, buffer.length, 0, (error: unknown, length: number) => {
      if (error) reject(error);
      else resolve(length);
    });
    return buffer.toString('utf8', 0, await promise);
  };
  return {
    next,
    async until(part) {
      for (;;) {
        const message = await next();
        if (message.includes(part)) return message;
      }
    },
    close: () => void close(fd),
  };
}
