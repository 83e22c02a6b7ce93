;; Searches a JSON string literal for the first byte that needs a closer look: a quote, a control character, or a
;; backslash that begins no valid escape. Searches 64 bytes at a time.
;;
;; `npm run generate` assembles this file into simd-search.ts, and simd-search.test.ts checks that the two match.
;;
;; The names below that end in `bits` are sets of bytes: each of the 64 bits stands for one of the 64 bytes, the lowest
;; bit for the first byte. WebAssembly has no macros, and a call costs too much here, so each test of the 64 bytes is
;; written out for each of the four vectors of 16 bytes.
(module
  ;; 2 pages: a window of 64 KiB, and space behind it, because the last 64 bytes may begin at the end of the window.
  (memory (export "memory") 2 2)

  ;; Takes a position in the memory: inside a string literal, and not inside an escape. Returns the position of the first
  ;; byte that needs a closer look. The caller makes sure that there is one.
  (func (export "run") (param $position i32) (result i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128) ;; the 64 bytes
    (local $high v128) (local $low v128) ;; tables by the upper and the lower half of a byte
    (local $aHits v128) (local $bHits v128) (local $cHits v128) (local $dHits v128) ;; what the tables have in common
    (local $stopBits i64) ;; the bytes that end the search, as far as known
    (local $backslashBits i64)
    (local $escapeBits i64) ;; backslashes that begin an escape
    (local $escapedBits i64) ;; the bytes behind them
    (local $carried i64) ;; 1 if the last byte before the 64 bytes is a backslash that begins an escape, else 0
    (local $oddBits i64) ;; escaped bytes that make no escape of two characters
    (local $digitBits i64)
    (local $found i64) ;; the index of the first byte that ends the search

    (loop $search
      (local.set $a (v128.load offset=0 align=1 (local.get $position)))
      (local.set $b (v128.load offset=16 align=1 (local.get $position)))
      (local.set $c (v128.load offset=32 align=1 (local.get $position)))
      (local.set $d (v128.load offset=48 align=1 (local.get $position)))

      ;; Quotes (0x22).
      (local.set $stopBits (i64.or (i64.or (i64.or
        (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $a) (i8x16.splat (i32.const 0x22)))))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $b) (i8x16.splat (i32.const 0x22))))) (i64.const 16)))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $c) (i8x16.splat (i32.const 0x22))))) (i64.const 32)))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $d) (i8x16.splat (i32.const 0x22))))) (i64.const 48))))

      ;; Backslashes (0x5c).
      (local.set $backslashBits (i64.or (i64.or (i64.or
        (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $a) (i8x16.splat (i32.const 0x5c)))))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $b) (i8x16.splat (i32.const 0x5c))))) (i64.const 16)))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $c) (i8x16.splat (i32.const 0x5c))))) (i64.const 32)))
        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $d) (i8x16.splat (i32.const 0x5c))))) (i64.const 48))))

      (local.set $escapedBits (i64.const 0))
      (if (i64.ne (i64.or (local.get $backslashBits) (local.get $carried)) (i64.const 0))
        (then
          ;; Of backslashes in a row, every other one begins an escape. Arithmetic finds them without a branch for each,
          ;; because a processor mispredicts where the next escape is.
          ;;
          ;; A first byte that is escaped by the byte before it begins no escape.
          (local.set $backslashBits
            (i64.and (local.get $backslashBits) (i64.xor (local.get $carried) (i64.const -1))))
          ;; Adding the first backslash of each row that begins at an even index carries through the whole row and
          ;; clears it. So the sum tells those rows from the rows that begin at an odd index. An escape begins at every
          ;; even index of the former and at every odd index of the latter.
          (local.set $escapeBits
            (i64.and
              (i64.xor
                (i64.xor
                  (i64.and
                    (i64.xor
                      (i64.add
                        (local.get $backslashBits)
                        ;; Backslashes behind no other backslash, at an even index.
                        (i64.and
                          (i64.and
                            (local.get $backslashBits)
                            (i64.xor (i64.shl (local.get $backslashBits) (i64.const 1)) (i64.const -1)))
                          (i64.const 0x5555555555555555)))
                      (i64.const -1))
                    (local.get $backslashBits))
                  (i64.const 0x5555555555555555))
                (i64.const -1))
              (local.get $backslashBits)))
          (local.set $escapedBits (i64.or (i64.shl (local.get $escapeBits) (i64.const 1)) (local.get $carried)))
          (local.set $carried (i64.shr_u (local.get $escapeBits) (i64.const 63)))

          ;; An escaped quote does not end the search.
          (local.set $stopBits (i64.and (local.get $stopBits) (i64.xor (local.get $escapedBits) (i64.const -1))))

          ;; The characters of escapes of two characters: " / \ b f n r t. A byte is one of them if the entries of its
          ;; halves in the two tables have a bit in common:
          ;;
          ;;   bit 1: 0x22 "  0x2f /     bit 2: 0x5c \     bit 4: 0x62 b  0x66 f  0x6e n     bit 8: 0x72 r  0x74 t
          (local.set $high (v128.const i8x16 0 0 1 0 0 2 4 8 0 0 0 0 0 0 0 0))
          (local.set $low (v128.const i8x16 0 0 13 0 8 0 4 0 0 0 0 0 2 0 4 1))
          (local.set $aHits (v128.and
            (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $a) (i32.const 4)))
            (i8x16.swizzle (local.get $low) (v128.and (local.get $a) (i8x16.splat (i32.const 0x0f))))))
          (local.set $bHits (v128.and
            (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $b) (i32.const 4)))
            (i8x16.swizzle (local.get $low) (v128.and (local.get $b) (i8x16.splat (i32.const 0x0f))))))
          (local.set $cHits (v128.and
            (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $c) (i32.const 4)))
            (i8x16.swizzle (local.get $low) (v128.and (local.get $c) (i8x16.splat (i32.const 0x0f))))))
          (local.set $dHits (v128.and
            (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $d) (i32.const 4)))
            (i8x16.swizzle (local.get $low) (v128.and (local.get $d) (i8x16.splat (i32.const 0x0f))))))
          (local.set $oddBits
            (i64.and
              (local.get $escapedBits)
              (i64.xor
                (i64.or (i64.or (i64.or
                  (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $aHits) (i8x16.splat (i32.const 0)))))
                  (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $bHits) (i8x16.splat (i32.const 0))))) (i64.const 16)))
                  (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $cHits) (i8x16.splat (i32.const 0))))) (i64.const 32)))
                  (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $dHits) (i8x16.splat (i32.const 0))))) (i64.const 48)))
                (i64.const -1))))

          (if (i64.ne (local.get $oddBits) (i64.const 0))
            (then
              (local.set $stopBits (i64.or (local.get $stopBits) (local.get $oddBits)))

              ;; Hexadecimal digits, found in the same way:
              ;;
              ;;   bit 1: 0x30 to 0x39     bit 2: 0x41 to 0x46, 0x61 to 0x66
              (local.set $high (v128.const i8x16 0 0 0 1 2 0 2 0 0 0 0 0 0 0 0 0))
              (local.set $low (v128.const i8x16 1 3 3 3 3 3 3 1 1 1 0 0 0 0 0 0))
              (local.set $aHits (v128.and
                (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $a) (i32.const 4)))
                (i8x16.swizzle (local.get $low) (v128.and (local.get $a) (i8x16.splat (i32.const 0x0f))))))
              (local.set $bHits (v128.and
                (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $b) (i32.const 4)))
                (i8x16.swizzle (local.get $low) (v128.and (local.get $b) (i8x16.splat (i32.const 0x0f))))))
              (local.set $cHits (v128.and
                (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $c) (i32.const 4)))
                (i8x16.swizzle (local.get $low) (v128.and (local.get $c) (i8x16.splat (i32.const 0x0f))))))
              (local.set $dHits (v128.and
                (i8x16.swizzle (local.get $high) (i8x16.shr_u (local.get $d) (i32.const 4)))
                (i8x16.swizzle (local.get $low) (v128.and (local.get $d) (i8x16.splat (i32.const 0x0f))))))
              (local.set $digitBits (i64.or (i64.or (i64.or
                (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $aHits) (i8x16.splat (i32.const 0)))))
                (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $bHits) (i8x16.splat (i32.const 0))))) (i64.const 16)))
                (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $cHits) (i8x16.splat (i32.const 0))))) (i64.const 32)))
                (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.ne (local.get $dHits) (i8x16.splat (i32.const 0))))) (i64.const 48))))

              ;; An escaped u (0x75) does not end the search if four digits follow it. Digits beyond the 64 bytes count
              ;; as absent.
              (local.set $stopBits
                (i64.and
                  (local.get $stopBits)
                  (i64.xor
                    (i64.and (i64.and (i64.and (i64.and (i64.and
                      (local.get $escapedBits)
                      (i64.or (i64.or (i64.or
                        (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $a) (i8x16.splat (i32.const 0x75)))))
                        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $b) (i8x16.splat (i32.const 0x75))))) (i64.const 16)))
                        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $c) (i8x16.splat (i32.const 0x75))))) (i64.const 32)))
                        (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $d) (i8x16.splat (i32.const 0x75))))) (i64.const 48))))
                      (i64.shr_u (local.get $digitBits) (i64.const 1)))
                      (i64.shr_u (local.get $digitBits) (i64.const 2)))
                      (i64.shr_u (local.get $digitBits) (i64.const 3)))
                      (i64.shr_u (local.get $digitBits) (i64.const 4)))
                    (i64.const -1))))))))

      ;; Nothing in these 64 bytes ends the search, and none of them is a control character (below 0x20): go on.
      (if
        (i64.eqz
          (i64.or
            (local.get $stopBits)
            (i64.extend_i32_u
              (v128.any_true
                (v128.or (v128.or (v128.or
                  (i8x16.lt_u (local.get $a) (i8x16.splat (i32.const 0x20)))
                  (i8x16.lt_u (local.get $b) (i8x16.splat (i32.const 0x20))))
                  (i8x16.lt_u (local.get $c) (i8x16.splat (i32.const 0x20))))
                  (i8x16.lt_u (local.get $d) (i8x16.splat (i32.const 0x20))))))))
        (then
          (local.set $position (i32.add (local.get $position) (i32.const 64)))
          (br $search)))

      ;; The first byte that ends the search.
      (local.set $found (i64.ctz (i64.or
        (local.get $stopBits)
        (i64.or (i64.or (i64.or
          (i64.extend_i32_u (i8x16.bitmask (i8x16.lt_u (local.get $a) (i8x16.splat (i32.const 0x20)))))
          (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.lt_u (local.get $b) (i8x16.splat (i32.const 0x20))))) (i64.const 16)))
          (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.lt_u (local.get $c) (i8x16.splat (i32.const 0x20))))) (i64.const 32)))
          (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.lt_u (local.get $d) (i8x16.splat (i32.const 0x20))))) (i64.const 48))))))

      ;; If that byte is escaped, the position is that of its backslash. The search starts once more from there, because
      ;; the digits of a \u may be beyond the 64 bytes. It ends if the backslash is the first of the 64 bytes already.
      (if
        (i32.and
          (i32.ne
            (local.get $position)
            (local.tee $position
              (i32.sub
                (i32.add (local.get $position) (i32.wrap_i64 (local.get $found)))
                (i32.and
                  (i32.wrap_i64 (i64.shr_u (local.get $escapedBits) (local.get $found)))
                  (i32.const 1)))))
          (i32.eq (i32.load8_u (local.get $position)) (i32.const 0x5c)))
        (then
          (local.set $carried (i64.const 0))
          (br $search))))

    (local.get $position)))
