//! A patch for the vDSO that makes a program's wall clock differ from the machine's.
//!
//! Programs ask for the time by functions that the kernel maps into each of them, and find these by name, in
//! the mapping's table of symbols, after they were started. So it is enough to change that table before the
//! first instruction: the names then lead to a stub in the zeros behind the kernel's code, which calls the
//! kernel's own, untouched function and adds the offset. No instruction is moved, and a call costs a few
//! nanoseconds more.
//!
//! Everything here is computation on bytes; [`super::traced`] puts a patch into a process.

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Why no patch can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    /// There is no stub for this processor.
    #[error("it is there for x86-64 only")]
    Processor,
    /// The kernel maps none, or `/proc` does not show it.
    #[error("this process has no vDSO")]
    Missing,
    /// It is not as expected.
    #[error("the kernel's vDSO is of an unknown kind: {0}")]
    Unknown(&'static str),
}

/// What to write into a process's vDSO. Offsets are in bytes from its start, words as the machine stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patch {
    /// What must be there before: by this a vDSO is known to be the one that was read.
    pub(super) expected: Vec<(u64, u64)>,
    /// What is to be there.
    pub(super) words: Vec<(u64, u64)>,
    /// Where the shifted `clock_gettime` is then.
    pub(super) clock_gettime: u64,
}

/// The stub's machine code: the same for every program, found again by its data behind it.
struct Stub {
    /// Code and data, without what [`data`] fills in.
    bytes: &'static [u8],
    /// Where the data is.
    data: usize,
    /// By the function it stands for.
    entries: [usize; 3],
}

/// The functions that tell the wall clock: the name each kernel has, and its other one.
const FUNCTIONS: [[&[u8]; 2]; 3] = [
    [b"__vdso_clock_gettime", b"clock_gettime"],
    [b"__vdso_gettimeofday", b"gettimeofday"],
    [b"__vdso_time", b"time"],
];

/// Makes the patch for a whole mapping of the vDSO.
pub(super) fn patch(image: &[u8], offset_ms: i64) -> Result<Patch, Unusable> {
    let stub = stub().ok_or(Unusable::Processor)?;
    let elf = Elf::read(image)?;
    let place = free_place(image).filter(|place| image.len() - place >= stub.bytes.len());
    let place = place.ok_or(Unusable::Unknown("no room behind its code"))?;

    let mut symbols: Vec<(u64, u64, usize)> = Vec::new();
    for index in 0..elf.symbol_count()? {
        let Some((name, slot, value)) = elf.function(index) else { continue };
        if let Some(which) = FUNCTIONS.iter().position(|names| names.contains(&name)) {
            symbols.push((slot, value, which));
        }
    }
    let original = |which| {
        let found = symbols.iter().find(|symbol| symbol.2 == which);
        // Addresses are counted from the stub, so that it needs not know where it is.
        found.map(|(_, value, _)| (value.wrapping_sub(elf.bias)).wrapping_sub(place as u64))
    };
    let clock_gettime = original(0).ok_or(Unusable::Unknown("it has no `clock_gettime`"))?;
    let mut code = stub.bytes.to_vec();
    code[stub.data..].copy_from_slice(&data(offset_ms, clock_gettime, original(1).unwrap_or_default()));

    let mut expected = vec![(0, word(image, 0).ok_or(Unusable::Missing)?)];
    let mut words = Vec::new();
    for (index, chunk) in code.chunks_exact(8).enumerate() {
        let offset = (place + index * 8) as u64;
        expected.push((offset, 0));
        words.push((offset, u64::from_ne_bytes(chunk.try_into().unwrap_or_default())));
    }
    for (slot, value, which) in symbols {
        expected.push((slot, value));
        words.push((slot, ((place + stub.entries[which]) as u64).wrapping_add(elf.bias)));
    }
    Ok(Patch { expected, words, clock_gettime: (place + stub.entries[0]) as u64 })
}

/// The stub's data: offset in seconds, the rest of it in nanoseconds and in microseconds (never negative, so
/// that one carry is enough), and the originals.
fn data(offset_ms: i64, clock_gettime: u64, gettimeofday: u64) -> [u8; 40] {
    let rest_ms = offset_ms.rem_euclid(1000);
    let words = [
        offset_ms.div_euclid(1000) as u64,
        (rest_ms * (SECOND_NS / 1000)) as u64,
        (rest_ms * 1000) as u64,
        clock_gettime,
        gettimeofday,
    ];
    let mut bytes = [0; 40];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Where the zeros begin that end the mapping. The file's last bytes may be zeros too, so a line stays free.
fn free_place(image: &[u8]) -> Option<usize> {
    const LINE: usize = 64;
    let used = image.iter().rposition(|&byte| byte != 0)? + 1;
    let place = (used + LINE).next_multiple_of(LINE);
    (place < image.len()).then_some(place)
}

/// What is needed of an ELF image.
struct Elf<'a> {
    image: &'a [u8],
    /// Addresses minus offsets into the image.
    bias: u64,
    symbols: u64,
    strings: u64,
    /// The older table of hashes.
    hash: Option<u64>,
    /// The newer one.
    gnu_hash: Option<u64>,
}

impl<'a> Elf<'a> {
    fn read(image: &'a [u8]) -> Result<Self, Unusable> {
        let unknown = Unusable::Unknown;
        // The magic number, 64 bits, little-endian.
        if !image.starts_with(b"\x7fELF\x02\x01") {
            return Err(unknown("it is no 64-bit ELF image"));
        }
        let headers = word(image, 32).ok_or(unknown("no program headers"))?;
        let (size, count) = (half(image, 54).unwrap_or(0), half(image, 56).unwrap_or(0));
        let (mut load, mut dynamic) = (None, None);
        for index in 0..count {
            let header = headers.wrapping_add(index * size);
            let kind = word(image, header).map(|kind| kind as u32);
            let (offset, address) =
                (word(image, header.wrapping_add(8)), word(image, header.wrapping_add(16)));
            match kind {
                Some(1) if load.is_none() => load = address.zip(offset),
                Some(2) => dynamic = offset,
                _ => {}
            }
        }
        let (address, offset) = load.ok_or(unknown("nothing to load"))?;
        let mut entry = dynamic.ok_or(unknown("no dynamic section"))?;
        let bias = address.wrapping_sub(offset);
        let (mut symbols, mut strings, mut hash, mut gnu_hash) = (None, None, None, None);
        while let Some((tag, value)) = word(image, entry).zip(word(image, entry.wrapping_add(8))) {
            let value = value.wrapping_sub(bias);
            match tag {
                0 => break,
                4 => hash = Some(value),
                5 => strings = Some(value),
                6 => symbols = Some(value),
                0x6fff_fef5 => gnu_hash = Some(value),
                _ => {}
            }
            entry = entry.wrapping_add(16);
        }
        let symbols = symbols.filter(|symbols| symbols % 8 == 0).ok_or(unknown("no table of symbols"))?;
        let strings = strings.ok_or(unknown("no table of strings"))?;
        Ok(Self { image, bias, symbols, strings, hash, gnu_hash })
    }

    /// How many symbols there are, which only the tables of hashes tell.
    fn symbol_count(&self) -> Result<u64, Unusable> {
        let count = match (self.hash, self.gnu_hash) {
            (Some(hash), _) => int(self.image, hash.wrapping_add(4)).map(u64::from),
            (None, Some(hash)) => self.gnu_symbol_count(hash),
            (None, None) => None,
        };
        // More than fit is as wrong as none; the loop over them must end.
        let fitting = count.filter(|count| *count <= self.image.len() as u64 / 24);
        fitting.ok_or(Unusable::Unknown("no table of hashes"))
    }

    /// The end of the longest chain of a GNU table.
    fn gnu_symbol_count(&self, table: u64) -> Option<u64> {
        let at = |offset: u64| int(self.image, table.wrapping_add(offset)).map(u64::from);
        let (buckets, first, bloom) = (at(0)?, at(4)?, at(8)?);
        let bucket = 16 + bloom * 8;
        let chain = bucket + buckets * 4;
        let mut last = 0;
        for index in 0..buckets.min(self.image.len() as u64) {
            last = last.max(at(bucket + index * 4)?);
        }
        if last < first {
            return Some(first);
        }
        // The last link of a chain has its lowest bit set.
        while at(chain + (last - first) * 4)? & 1 == 0 {
            last += 1;
        }
        Some(last + 1)
    }

    /// The name of a defined function, where its value stands, and the value.
    fn function(&self, index: u64) -> Option<(&'a [u8], u64, u64)> {
        const FUNCTION: u8 = 2;
        let symbol = self.symbols.wrapping_add(index * 24);
        let slot = symbol.wrapping_add(8);
        let start = self.strings.wrapping_add(int(self.image, symbol)?.into());
        let kind_and_section = int(self.image, symbol.wrapping_add(4))?;
        let (kind, section) = (kind_and_section as u8 & 0xf, kind_and_section >> 16);
        let name = self.image.get(start as usize..)?.split(|&byte| byte == 0).next()?;
        (kind == FUNCTION && section != 0).then_some((name, slot, word(self.image, slot)?))
    }
}

fn word(image: &[u8], offset: u64) -> Option<u64> {
    let start = usize::try_from(offset).ok()?;
    Some(u64::from_le_bytes(image.get(start..start.checked_add(8)?)?.try_into().ok()?))
}

fn int(image: &[u8], offset: u64) -> Option<u32> {
    let start = usize::try_from(offset).ok()?;
    Some(u32::from_le_bytes(image.get(start..start.checked_add(4)?)?.try_into().ok()?))
}

fn half(image: &[u8], offset: u64) -> Option<u64> {
    let start = usize::try_from(offset).ok()?;
    Some(u16::from_le_bytes(image.get(start..start.checked_add(2)?)?.try_into().ok()?).into())
}

/// Where this process's own vDSO is mapped, and its bytes.
pub(super) fn own() -> Result<(u64, &'static [u8]), Unusable> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|_| Unusable::Missing)?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).ok_or(Unusable::Missing)?;
    let range = line.split(' ').next().and_then(|range| range.split_once('-'));
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) =
        range.and_then(|(start, end)| address(start).zip(address(end))).ok_or(Unusable::Missing)?;
    let length = end.saturating_sub(start) as usize;
    // SAFETY: the kernel maps these bytes for the process's whole life, readable, and nobody writes to them.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start as usize), length) };
    Ok((start, bytes))
}

#[cfg(not(target_arch = "x86_64"))]
fn stub() -> Option<Stub> {
    None
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "other processors have none")]
fn stub() -> Option<Stub> {
    let at = |symbol: &'static u8| std::ptr::from_ref(symbol);
    // SAFETY: the symbols are labels in one read-only section that is assembled below; none is written to.
    unsafe {
        let start = at(&killpoint_stub);
        let offset = |symbol: &'static u8| at(symbol).addr() - start.addr();
        Some(Stub {
            bytes: std::slice::from_raw_parts(start, offset(&killpoint_stub_end)),
            data: offset(&killpoint_stub_data),
            entries: [0, offset(&killpoint_stub_gettimeofday), offset(&killpoint_stub_time)],
        })
    }
}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    static killpoint_stub: u8;
    static killpoint_stub_gettimeofday: u8;
    static killpoint_stub_time: u8;
    static killpoint_stub_data: u8;
    static killpoint_stub_end: u8;
}

// Copied as bytes, so everything is addressed relative to the instruction. The bits of 0x921 are the clocks
// that tell the time of day: REALTIME, REALTIME_COARSE, REALTIME_ALARM and TAI.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    r#"
    .pushsection .rodata.killpoint_stub, "a", @progbits
    .balign 8
    .globl killpoint_stub, killpoint_stub_gettimeofday, killpoint_stub_time
    .globl killpoint_stub_data, killpoint_stub_end
    .hidden killpoint_stub, killpoint_stub_gettimeofday, killpoint_stub_time
    .hidden killpoint_stub_data, killpoint_stub_end

killpoint_stub:                         # int clock_gettime(clock edi, timespec *rsi)
    endbr64
    push rdi
    push rsi
    sub rsp, 8                          # the stack is aligned to 16 at each call
    lea rax, [rip + killpoint_stub]
    add rax, [rip + 4f]
    call rax
    add rsp, 8
    pop rsi
    pop rdi
    test eax, eax
    jnz 3f
    cmp edi, 11
    ja 3f
    mov ecx, 0x921
    bt ecx, edi
    jnc 3f
    mov rcx, [rip + 5f]
    add [rsi], rcx
    mov rcx, [rip + 6f]
    add rcx, [rsi + 8]
    cmp rcx, 1000000000
    jl 2f
    sub rcx, 1000000000
    inc qword ptr [rsi]
2:  mov [rsi + 8], rcx
3:  ret

    .balign 16
killpoint_stub_gettimeofday:            # int gettimeofday(timeval *rdi, timezone *rsi)
    endbr64
    push rdi
    lea rax, [rip + killpoint_stub]
    add rax, [rip + 8f]
    call rax
    pop rdi
    test eax, eax
    jnz 3f
    test rdi, rdi
    jz 3f
    mov rcx, [rip + 5f]
    add [rdi], rcx
    mov rcx, [rip + 7f]
    add rcx, [rdi + 8]
    cmp rcx, 1000000
    jl 2f
    sub rcx, 1000000
    inc qword ptr [rdi]
2:  mov [rdi + 8], rcx
3:  ret

    .balign 16
killpoint_stub_time:                    # time_t time(time_t *rdi), as REALTIME_COARSE, whose seconds it is
    endbr64
    push rdi
    sub rsp, 16
    mov edi, 5
    mov rsi, rsp
    call killpoint_stub
    mov rax, [rsp]
    add rsp, 16
    pop rdi
    test rdi, rdi
    jz 3f
    mov [rdi], rax
3:  ret

    .balign 8
killpoint_stub_data:
5:  .quad 0                             # seconds
6:  .quad 0                             # nanoseconds
7:  .quad 0                             # microseconds
4:  .quad 0                             # the kernel's clock_gettime, from the stub's start
8:  .quad 0                             # its gettimeofday
killpoint_stub_end:
    .popsection
    "#
);

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type ClockGettime = extern "C" fn(i32, *mut libc::timespec) -> i32;
    type Gettimeofday = extern "C" fn(*mut libc::timeval, *mut libc::c_void) -> i32;
    type Time = extern "C" fn(*mut i64) -> i64;

    /// What the fake kernel below says.
    const SECONDS: i64 = 1_700_000_000;
    const NANOSECONDS: i64 = 999_999_999;

    extern "C" fn fake_clock_gettime(clock: i32, time: *mut libc::timespec) -> i32 {
        if clock == 77 {
            return -libc::EINVAL;
        }
        // SAFETY: the tests below give a timespec of theirs.
        unsafe { *time = libc::timespec { tv_sec: SECONDS, tv_nsec: NANOSECONDS } };
        0
    }

    extern "C" fn fake_gettimeofday(time: *mut libc::timeval, _: *mut libc::c_void) -> i32 {
        if !time.is_null() {
            // SAFETY: the tests below give a timeval of theirs.
            unsafe { *time = libc::timeval { tv_sec: SECONDS, tv_usec: NANOSECONDS / 1000 } };
        }
        0
    }

    /// A stub that can be called, in front of a fake kernel.
    struct Live {
        base: *mut u8,
        entries: [usize; 3],
    }

    impl Live {
        fn new(offset_ms: i64) -> Self {
            let stub = stub().unwrap();
            let (rwx, private) = (
                libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            // SAFETY: a new mapping, into which the stub's bytes fit.
            unsafe {
                let base = libc::mmap(std::ptr::null_mut(), 4096, rwx, private, -1, 0).cast::<u8>();
                assert_ne!(base.cast(), libc::MAP_FAILED);
                let from = |function: usize| (function as u64).wrapping_sub(base as u64);
                let data = data(
                    offset_ms,
                    from(fake_clock_gettime as *const () as usize),
                    from(fake_gettimeofday as *const () as usize),
                );
                std::ptr::copy_nonoverlapping(stub.bytes.as_ptr(), base, stub.bytes.len());
                std::ptr::copy_nonoverlapping(data.as_ptr(), base.add(stub.data), data.len());
                Self { base, entries: stub.entries }
            }
        }

        fn entry(&self, which: usize) -> *const () {
            self.base.wrapping_add(self.entries[which]).cast()
        }

        fn clock_gettime(&self, clock: i32) -> (i32, i64, i64) {
            let mut time = libc::timespec { tv_sec: -1, tv_nsec: -1 };
            // SAFETY: the entry has this signature.
            let function: ClockGettime = unsafe { std::mem::transmute(self.entry(0)) };
            (function(clock, &raw mut time), time.tv_sec, time.tv_nsec)
        }
    }

    impl Drop for Live {
        fn drop(&mut self) {
            // SAFETY: our own mapping, which nobody calls any more.
            unsafe { libc::munmap(self.base.cast(), 4096) };
        }
    }

    #[test]
    fn only_the_clocks_of_the_day_are_shifted() {
        let live = Live::new(-3_600_000);
        for clock in
            [libc::CLOCK_REALTIME, libc::CLOCK_REALTIME_COARSE, libc::CLOCK_REALTIME_ALARM, libc::CLOCK_TAI]
        {
            assert_eq!(live.clock_gettime(clock), (0, SECONDS - 3600, NANOSECONDS), "{clock}");
        }
        for clock in [
            libc::CLOCK_MONOTONIC,
            libc::CLOCK_PROCESS_CPUTIME_ID,
            libc::CLOCK_THREAD_CPUTIME_ID,
            libc::CLOCK_MONOTONIC_RAW,
            libc::CLOCK_MONOTONIC_COARSE,
            libc::CLOCK_BOOTTIME,
            libc::CLOCK_BOOTTIME_ALARM,
            12,
            32,
            37,
            -6,
            i32::MIN,
        ] {
            assert_eq!(live.clock_gettime(clock), (0, SECONDS, NANOSECONDS), "{clock}");
        }
        assert_eq!(live.clock_gettime(77), (-libc::EINVAL, -1, -1));
    }

    proptest! {
        #[test]
            fn offsets_of_any_sign_and_size_add_up(offset_ms in -200_000_000_000_i64..200_000_000_000) {
            let live = Live::new(offset_ms);
            let shifted_ns = i128::from(SECONDS) * 1_000_000_000 + i128::from(NANOSECONDS) + i128::from(offset_ms) * 1_000_000;
            let (answer, seconds, nanoseconds) = live.clock_gettime(libc::CLOCK_REALTIME);
            prop_assert_eq!(answer, 0);
            prop_assert!((0..1_000_000_000).contains(&nanoseconds));
            prop_assert_eq!(i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds), shifted_ns);

            let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
            // SAFETY: the entry has this signature.
            let gettimeofday: Gettimeofday = unsafe { std::mem::transmute(live.entry(1)) };
            // SAFETY: the entry has this signature.
            let time_of: Time = unsafe { std::mem::transmute(live.entry(2)) };
            prop_assert_eq!(gettimeofday(&raw mut time, std::ptr::null_mut()), 0);
            prop_assert!((0..1_000_000).contains(&time.tv_usec));
            let shifted_us = shifted_ns.div_euclid(1000);
            prop_assert_eq!(i128::from(time.tv_sec) * 1_000_000 + i128::from(time.tv_usec), shifted_us);
            prop_assert_eq!(gettimeofday(std::ptr::null_mut(), std::ptr::null_mut()), 0);

            let mut stored = 0;
            prop_assert_eq!(time_of(&raw mut stored), seconds);
            prop_assert_eq!(stored, seconds);
            prop_assert_eq!(time_of(std::ptr::null_mut()), seconds);
        }

        #[test]
        fn a_damaged_image_is_refused_or_patched_inside_its_bounds(
            at in prop::collection::vec((0_usize..2048, any::<u8>()), 0..24),
            length in 0_usize..8192,
        ) {
            let mut image = own().unwrap().1.to_vec();
            for (place, byte) in at {
                image[place] = byte;
            }
            image.truncate(length);
            if let Ok(patch) = patch(&image, 1) {
                for (offset, _) in patch.words.iter().chain(&patch.expected) {
                    prop_assert!((*offset as usize) + 8 <= image.len());
                }
            }
        }
    }

    #[test]
    fn every_name_of_this_kernel_leads_to_the_stub() {
        let (_, image) = own().unwrap();
        let patch = patch(image, 1000).unwrap();
        let mut patched = image.to_vec();
        for (offset, old) in &patch.expected {
            assert_eq!(word(image, *offset), Some(*old));
        }
        for (offset, new) in &patch.words {
            patched[*offset as usize..][..8].copy_from_slice(&new.to_le_bytes());
        }
        let (before, after) = (Elf::read(image).unwrap(), Elf::read(&patched).unwrap());
        let mut moved = Vec::new();
        for index in 0..before.symbol_count().unwrap() {
            let (Some(old), Some(new)) = (before.function(index), after.function(index)) else { continue };
            assert_eq!(old.0, new.0);
            if old.2 != new.2 {
                moved.push(String::from_utf8_lossy(old.0).into_owned());
            }
        }
        moved.sort();
        let names = FUNCTIONS.iter().flatten().map(|name| String::from_utf8_lossy(name).into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert_eq!(moved, names);
        assert_eq!(patched.len(), image.len());
    }

    #[test]
    fn both_tables_of_hashes_count_the_same() {
        let (_, image) = own().unwrap();
        let elf = Elf::read(image).unwrap();
        if let (Some(_), Some(gnu)) = (elf.hash, elf.gnu_hash) {
            assert_eq!(elf.gnu_symbol_count(gnu), elf.symbol_count().ok());
        }
    }
}
