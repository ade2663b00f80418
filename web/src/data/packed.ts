// What cudabpf packed into the page: deflated, as base64.

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const code = new Uint8Array(128);
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (let i = 0; i < digits.length; i++) code[digits.charCodeAt(i)] = i;
  let length = base64.length;
  while (length && base64[length - 1] === "=") length--;
  const bytes = new Uint8Array((length * 3) >> 2);
  let at = 0;
  for (let i = 0; i < length; i += 4) {
    const group =
      (code[base64.charCodeAt(i)]! << 18) | (code[base64.charCodeAt(i + 1)]! << 12) |
      ((code[base64.charCodeAt(i + 2)] ?? 0) << 6) | (code[base64.charCodeAt(i + 3)] ?? 0);
    bytes[at++] = group >> 16;
    if (at < bytes.length) bytes[at++] = group >> 8;
    if (at < bytes.length) bytes[at++] = group;
  }
  return bytes;
}

export async function unpack(id: string): Promise<Uint8Array> {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the file is cut off: it has no ${id}`);
  const deflated = new Blob([bytesOf(element.textContent ?? "")]).stream();
  element.textContent = ""; // it is not needed twice
  const bytes = deflated.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(bytes).arrayBuffer());
}

// A series of numbers, seven bits a byte, the lowest first.
export class PackedNumbers {
  private at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  next(): number {
    let byte = this.bytes[this.at++]!;
    if (byte < 128) return byte;
    let number = byte & 127;
    let unit = 128;
    do {
      byte = this.bytes[this.at++]!;
      number += (byte & 127) * unit;
      unit *= 128;
    } while (byte >= 128);
    return number;
  }
  nextSigned(): number {
    const number = this.next();
    return number % 2 ? -(number + 1) / 2 : number / 2;
  }
}
