# One image for every process of Callslip; the command says which: `run api`, `run ingest`, ...
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 CALLSLIP_DATA_DIR=/var/lib/callslip
WORKDIR /opt/callslip

# OCR of scanned pages in English and Korean.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tesseract-ocr tesseract-ocr-kor \
    && rm -rf /var/lib/apt/lists/*

COPY requirements.lock ./
RUN pip install --require-hashes -r requirements.lock
COPY . .
RUN pip install --no-deps . \
    && useradd --uid 1000 --create-home callslip \
    && install -d -o callslip /var/lib/callslip

USER callslip
VOLUME /var/lib/callslip
ENTRYPOINT ["callslip"]
